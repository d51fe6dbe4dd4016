// Package upload moves a local source into a Cloud Storage object. An
// interruption at any moment costs only the bytes that the service had not yet
// committed. The object that appears is byte-identical to the source, or does not
// appear.
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
//	a pipe, or any reader   Uploader.Reader     no other call
//	written by a function   Uploader.NewWriter  no other call; in place of storage.Writer
//
// [Uploader.With] sets options for single calls: an observer, a retry budget, a
// header, the expected size, and a confirmation before the object is published.
// Package gcsup/upload/tree lists files for Files, and package
// gcsup/upload/manifest records which are finished. docs/examples has a small
// program for each use.
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
// path, call [Uploader.TakeOver] first, and on another machine [Uploader.Import].
// [Uploader.Prune] deletes what cannot be resumed, and [Uploader.Cancel] what is not
// wanted any more.
//
// A file of at most 8 MiB, and a stream of at most 256 KiB, goes in one request and
// is not saved. Otherwise the first request carries up to 1 GiB, of which nothing
// is known to be durable before its reply: see [CommitEvery]. A request of a stream
// carries at most one [Options.Window].
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
//   - Committed bytes are given up only if the service itself reports that they
//     were damaged, that the session was canceled, or twice that it is gone.
//   - No byte of a source that changed since the session began is sent. A stream
//     whose reader fails never becomes a truncated object.
//   - Memory per upload is constant: a few MiB for a file, the file itself up
//     to 8 MiB. All streams, files that are compressed, and the parts of multipart
//     uploads share [Options.Memory].
//
// # Errors
//
// Branch with errors.Is on a sentinel, and with errors.As on a type. An upload is
// resumable if the same call, or [Uploader.Resume], continues it. That takes a
// [Options.Store], and a source that gets a session: not a stream, and not a file
// that goes in one request. [Result.Resumable] reports it for each call.
//
//	error                           what happened                                            resumable  what to do
//
//	*InterruptedError               the context of the call was done                         [4]        call again with another context
//	ErrTruncated                    the source is shorter than CallOptions.Size              [4]        correct the source or the size
//	ErrNotTried                     the file of a batch was not started, because of others   yes        upload it again later
//	*session.Error                  the service refused, or could not be reached             [5]        see the sentinel that it wraps
//
//	session.ErrInvalid              the request is invalid                                   yes        correct the request
//	session.ErrCredentials          the credentials were rejected, even after a refresh      yes        log in again
//	session.ErrPermission           the credentials do not allow the request                 yes        grant the permission
//	session.ErrNotFound             no such bucket, or the endpoint is not the API           yes        correct the bucket or the endpoint
//	session.ErrQuota                a quota is exhausted that is not refilled today          yes        resume when it is refilled
//	session.ErrPrecondition         a precondition does not hold                             [1]        check the object at the destination
//
//	session.ErrOutcomeUnknown       an object exists that may be of another client           no         check the object; do not replace it
//	session.ErrSessionLost          the session was lost and could not be replaced           no         start over
//	session.ErrCanceled             another client canceled the session                      no         start over
//	session.ErrChecksum             bytes are not those of the source, or of Spec.CRC32C     no         check the source, start over
//	session.ErrUnexpectedData       the server has data that this upload did not send        no         stop the other client, start over
//	session.ErrProtocol             replies contradict each other, or refuse the data        [2]        resume once, then start over
//	session.ErrURIMismatch          the session URI is of another endpoint or bucket         [3]        use the endpoint of the first run
//
//	session.ErrSourceChanged        the source changed since the session started             yes        restore the source, or start over
//	session.ErrStalled              a request moved too few bytes for too long               yes        nothing: it is retried
//	session.ErrRetriesExhausted     too many failures without newly committed bytes          yes        resume later
//	chunk.ErrRead                   the file or the reader failed                            [6]        correct the source
//	chunk.ErrNotRegular             the path names no regular file                           no         use Reader for pipes and devices
//	*fs.PathError                   the file, or the directory of the store, cannot be used  [4]        correct the path or the permissions
//	fs.ErrExist                     Import: the upload of this file is saved already         yes        resume that
//
//	session.ErrNoToken              no upload is saved under the ID                          no         check the ID, or start over
//	session.ErrCorruptToken         the saved upload was truncated or edited                 no         start over: it is set aside
//	session.ErrTokenVersion         a newer program saved the upload                         yes        use the newer program
//	session.ErrInsecurePermissions  others can access the saved upload, or it is no file     yes        correct the permissions
//	session.ErrOptionsDiffer        the upload was started with other options                yes        use those options, or start over
//	session.ErrEncryptionKey        the upload needs its encryption key                      yes        give the key of the first run
//	session.ErrInUse                another process holds the lock or lease of the upload    yes        wait for that process
//	*session.HeldError              the same, with the time when the lease runs out          yes        wait for that time
//
// In the third column, [1] means yes if [session.Error.Early] is set, and
// [session.Spec.NoClobber] is not: the precondition was checked before the last
// byte was sent. [2] means yes if [session.Error.Open] is set: the session still
// exists. [3] means yes at its own endpoint. [4] means yes if a session was saved
// before: see [InterruptedError.Resumable] and [Result.Resumable]. [5] means that
// the sentinel decides. [6] means yes for a file.
//
// A failed precondition is a [*session.Error] with status 412, no matter who
// noticed it. If it was noticed early, its field Existing is the object at the
// destination. errors.Is finds in an *InterruptedError only the error of the
// context, [context.Canceled] or [context.DeadlineExceeded]. ErrSourceChanged is
// [chunk.ErrChanged]. ErrStalled is always the cause of another error.
package upload
