// Package upload uploads a local source to a Cloud Storage object. After an
// interruption, only bytes that the service had not committed are sent. Exceptions: a
// file of at most 8 MiB starts over. If the call fails or the process ends, an upload starts
// over if there is no [Options.Store], or if no other call can resume it (see the table).
// The object is byte-identical to the source, or does not appear. With Gzip of [Spec], the
// object has the compressed bytes. Guarantees lists all other exceptions.
//
// Make one [Uploader] with [New], and call the method for the source:
//
//	up, err := upload.New(httpClient, &upload.Options{Store: store})
//	...
//	result, err := up.File(ctx, "disk.img", upload.Spec{Bucket: "my-bucket", Object: "disk.img"})
//
//	the source is           call                who can resume it
//	a file                  Uploader.File       the same call, in any process
//	many files              Uploader.Files      the same call, in any process
//	readable at any offset  Uploader.ReaderAt   the same call, in any process, with an identity
//	in memory               Uploader.Bytes      no other call
//	a file of an fs.FS      Uploader.FS         no other call
//	a pipe, or any reader   Uploader.Reader     no other call, unless in a spool
//	written by a function   Uploader.NewWriter  no other call, unless in a spool; replaces storage.Writer
//
// [Uploader.With] sets options for single calls: an observer, a retry budget, a
// header, the expected size, and a confirmation before the object is published.
// Package gcsup/upload/tree lists files for Files, and package
// gcsup/upload/manifest records which are finished. Package gcsup/upload/mirror makes a
// prefix equal to a directory. docs/examples has a small program for each use, and
// docs/start/glossary.md explains the words.
//
// The HTTP client adds the credentials. Package gcsup/upload/gcs makes one from
// Application Default Credentials. Package upload links no Google SDK. A client of your
// own should use [NewTransport].
//
// # Saved uploads
//
// [Options.Store] keeps interrupted uploads: a directory ([state.OpenDir]), or a
// database ([state.Store]). When a program starts, [Uploader.Saved] lists the uploads
// of earlier processes, [Uploader.Query] asks the service for the committed bytes of an
// upload, and [Uploader.Resume] continues the upload. If the source has another path
// now, call [Uploader.TakeOver] first, and on another machine [Uploader.Import].
// [Uploader.Prune] deletes uploads that cannot be resumed, and [Uploader.Cancel] an
// upload that is no longer wanted. A saved upload contains a secret: see
// [state.Encode].
//
// A file of at most 8 MiB, or a stream of at most 256 KiB, is sent in one request and
// is not saved. Otherwise the first request carries up to 1 GiB. Before its reply, it
// is not known which of these bytes are committed: see [Options.ChunkSize]. A request of a
// stream carries at most one [Options.Window].
//
// # Guarantees
//
//   - The service compares the CRC32C of the whole object with that of the source
//     before the object exists. It refuses corrupt bytes, and an earlier object with
//     that name stays.
//   - After a failure the uploader queries the committed offset, and continues from there.
//     Backoffs grow from one second to half a minute, with a random part, and are always shorter
//     than a minute. An open circuit breaker, or the throttle of a bucket, can hold a request
//     longer.
//   - An upload stops after a number of failures in a row without newly committed
//     bytes. The number grows with the size. The session of a resumable upload
//     (see Errors) is kept, so that the same call, or [Uploader.Resume],
//     continues the upload.
//   - Committed bytes of a resumable upload are discarded only if the program requests it,
//     if the service refuses the object or reports that the bytes were damaged or the
//     session was canceled, or if two replies in a row say that the session is gone.
//     Exceptions: [session.Decide] replaces a resumed session whose replies contradict what
//     was sent. [Parts].Auto discards less than 16 MiB if one connection is slow. A
//     compressed file starts over if another version of this package compresses it
//     differently.
//   - An interruption costs at most the bytes at risk, which have a bound: see [AtRisk].
//   - A source that changed since the session began is not published. [Uploader.Import]
//     and [CallOptions].SourceVersion describe what is compared for a copy. A stream
//     whose reader fails never becomes a truncated object. But if the program that
//     writes a pipe fails, its reader gets EOF, and the object has what the program
//     wrote. [CallOptions].Confirm can prevent this.
//   - Memory per upload is constant: a few MiB for a large file, and the size of a
//     small one. All streams, files that are compressed, and the parts of multipart
//     uploads share [Options.Memory].
//
// # Errors
//
// Branch with errors.Is on a sentinel, and with errors.As on a type. The tables at
// [session.ErrInvalid], [state.ErrNotFound] and [ErrTruncated] list all of them except those
// of bucketstore, with what happened, whether the upload is resumable, and what to do.
//
// An upload is resumable if the same call, or [Uploader.Resume], continues it. This
// needs an [Options.Store]. A file that is sent in one request is not resumable. A
// stream is resumable only in a spool ([Spool]), after its input has ended.
// [Result.Resumable] reports it for each call.
//
// The error of a call is an [*InterruptedError] if its context was done, or if
// [Uploader.Pause] or [Uploader.Cancel] ended the upload. It is a [*session.Error] if
// the service refused a request or could not be reached.
package upload
