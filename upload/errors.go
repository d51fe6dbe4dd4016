package upload

import "errors"

// The sentinel errors of this package. The table lists every error of its calls
// with its package, unless that is this one.
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
//	*session.HeldError              the same, with the process, and the end of its lease     yes        wait for that time
//
// In the third column, [1] means yes if [session.Error.Early] is set, and
// [session.Spec.NoClobber] is not: the precondition was checked before the last
// byte was sent. [2] means yes if [session.Error.Open] is set: the session still
// exists. [3] means yes at its own endpoint. [4] means yes if a session was saved
// before: see [InterruptedError.Resumable] and [Result.Resumable]. [5] means that
// the sentinel decides. [6] means yes for a file.
//
// A failed precondition is a [*session.Error] with status 412, whether the service or
// the uploader found it. If the uploader found it early, the field Existing is the
// object at the destination. An *InterruptedError wraps only the error of the
// context, [context.Canceled] or [context.DeadlineExceeded]. ErrSourceChanged is
// [chunk.ErrChanged]. ErrStalled is always the cause of another error.
var (
	// ErrTruncated is wrapped by the error of an upload whose source ended before
	// [CallOptions].Size bytes.
	ErrTruncated = errors.New("source is shorter than expected")

	// ErrNotTried is wrapped by the error of a file of a batch that was not uploaded
	// because others failed: its bucket does not exist, the credentials are not accepted,
	// or the service could not be reached. Such an error also wraps the sentinel error of
	// that reason.
	ErrNotTried = errors.New("not tried")
)
