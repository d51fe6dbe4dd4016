package upload

import (
	"time"

	"gcsup/session"
)

// A Job is one file of a batch, and the object to make of it.
type Job struct {
	// Path is the source file.
	Path string
	Spec Spec

	// Size and ModTime are those of the file when it was listed. They choose the
	// order of work and the comparison with Object. The upload checks the file
	// itself.
	Size    int64
	ModTime time.Time

	// Listed is true if the destination was looked up in a listing. Object is
	// what it holds, nil if there is no object. If Listed is false, the
	// destination is looked up when that is necessary.
	Listed bool
	Object *session.Object

	// Err reports a file that cannot be uploaded: it was not readable, or the
	// service refuses its name. It is the outcome of the job.
	Err error
}
