package state

import "errors"

// Sentinel errors, for [errors.Is]. An upload is resumable if the driver keeps its
// saved upload, so that the next call for the same source and destination resumes it. Package
// session has the errors of exchanges.
//
//	sentinel                what happened                                               resumable  what to do
//
//	ErrNotFound             no upload is saved under the ID                             no         check the ID, or start over
//	ErrCorrupt              the saved upload was truncated or edited                    no         call SetAside and start over
//	ErrVersion              the saved upload has a version or field of a newer program  yes        use the newer program
//	ErrInsecurePermissions  others can access the saved upload, or it is not a file     yes        correct the permissions
//	ErrOptionsDiffer        the upload was started with other options                   yes        use those options, or start over
//	ErrInUse                another process holds the lock or lease, see [Lease]        yes        wait for that process
var (
	ErrNotFound            = errors.New("no such saved upload")
	ErrCorrupt             = errors.New("saved upload is damaged")
	ErrVersion             = errors.New("saved by a newer version of this program")
	ErrInsecurePermissions = errors.New("insecure saved upload")
	ErrOptionsDiffer       = errors.New("saved upload was started with other options")
	ErrInUse               = errors.New("upload is in use")
)
