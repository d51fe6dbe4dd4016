// Package upload moves a local source into a Cloud Storage object. An
// interruption at any moment costs only the bytes that the service had not yet
// committed. The object that appears is byte-identical to the source, or does not
// appear.
//
// Make an [Uploader] with [New], then call [Uploader.File]:
//
//	up, err := upload.New(httpClient, &upload.Options{Store: store})
//	...
//	result, err := up.File(ctx, "disk.img", upload.Spec{Bucket: "my-bucket", Object: "disk.img"})
//
// The same call in another process resumes an interrupted upload. On another
// machine, call [Uploader.Import] first. [Uploader.Reader] uploads a stream.
// [Uploader.Files] uploads many files at a time: package gcsup/upload/tree lists
// them, and package gcsup/upload/manifest records which are finished.
//
// The HTTP client adds the credentials. Package gcsup/upload/gcs makes one from
// Application Default Credentials. This package links no Google SDK: [NewTransport]
// is the transport for a client of your own.
//
// # Saved uploads
//
// [Options.Store] keeps interrupted uploads: a directory ([session.OpenDir]), or a
// database ([session.Store]). When a program starts, [Uploader.Saved] lists what
// earlier processes left, [Uploader.Query] asks the service how much of it is
// durable, and [Uploader.Resume] continues it. If the source is now at another
// path, call [Uploader.TakeOver] first. [Uploader.Prune] deletes what cannot be
// resumed, and [Uploader.Cancel] what is not wanted any more.
//
// # Guarantees
//
//   - The service compares the CRC32C of the whole object with the source's
//     before the object exists. It refuses corrupt bytes, and an earlier object
//     of that name stays.
//   - After a failure the uploader asks the service what it holds, and continues
//     from there. Waits grow from one second to half a minute, with a random
//     part. None is a minute or longer.
//   - An upload stops after a number of failures in a row without newly committed
//     bytes. The number grows with the size. The session is kept: the same call,
//     or [Uploader.Resume], continues.
//   - A committed byte is given up only for an answer of the service itself that
//     a second one confirms.
//   - No byte of a source that changed since the session began is sent. A stream
//     whose reader fails never becomes a truncated object.
//   - Memory per upload is constant: a few MiB for a file, the file itself up
//     to 8 MiB, two windows for a stream.
//
// # Errors
//
// Branch with errors.Is on the sentinels of package session, such as
// [session.ErrRetriesExhausted] (resumable), [session.ErrSourceChanged] and
// [session.ErrPrecondition]. An error of the service is a [*session.Error] with
// its status and history. A call whose context ended returns an
// [*InterruptedError]. [Result.Resumable] reports whether the same call can
// continue.
package upload
