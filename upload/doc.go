// Package upload moves bytes into a Cloud Storage object so that an
// interruption at any moment costs only what the server had not yet committed,
// and so that the object that appears is byte-identical to the source, or does
// not appear.
//
// Make an [Uploader] with [New], then call [Uploader.File]:
//
//	up, err := upload.New(httpClient, &upload.Options{Store: store})
//	...
//	result, err := up.File(ctx, "disk.img", upload.Spec{Bucket: "my-bucket", Object: "disk.img"})
//
// The same call again, in another process, resumes what was interrupted; on
// another machine [Uploader.Import] takes it over first. The HTTP client adds
// the credentials; package gcsup/upload/gcs makes one from Application Default
// Credentials. This package links no Google SDK.
//
// # Guarantees
//
//   - The service compares the CRC32C of the whole object with the source's
//     before the object comes into being. Corrupt bytes are refused; an
//     earlier object of that name stays.
//   - After a failure the server is asked what it holds, and sending goes on
//     from there. Waits grow from one second to half a minute, with a random
//     part; none is a minute or longer.
//   - An upload stops when a number of failures in a row brought no new
//     committed byte; the number grows with the size. The session is kept:
//     the same call, or [Uploader.Resume], goes on.
//   - A source that changed since the session began is an error, and nothing
//     of it is sent. A stream whose reader fails never becomes a truncated
//     object.
//   - Memory per upload is constant: a few MiB for a file, the file itself up
//     to 8 MiB, two windows for a stream.
//
// # Errors
//
// Branch on the sentinels of package session with errors.Is: [session.ErrBudget]
// (resumable), [session.ErrSourceChanged], [session.ErrPrecondition] and so on.
// An error of the service is a [*session.Error] with its status and history.
package upload
