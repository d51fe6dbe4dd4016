package mirror

import (
	"gcsup/session"
	"gcsup/upload"
)

// A Kind is what is done with a file or an object.
type Kind int

// The kinds. An [Outcome] has only Upload, Delete and Protect.
const (
	Upload  Kind = iota // the file is uploaded: there is no object, or one that differs
	Compare             // the bytes of the file are compared with the object, which is replaced if they differ
	Keep                // the object has the size and the time of the file
	Skip                // the entry of the directory is not a file
	Fail                // the file or directory cannot be read, so that nothing is deleted
	Delete              // the object has no file
	Protect             // the object has no file, and is not deleted: see Reason
)

var kindNames = [...]string{Upload: "upload", Compare: "compare", Keep: "keep", Skip: "skip", Fail: "fail", Delete: "delete", Protect: "protect"}

// String returns the name of k in lower case.
func (k Kind) String() string { return kindNames[k] }

// A Reason is why an object without a file is not deleted. Excluded is also the reason of some
// deletions, see Action.
type Reason int

// The reasons.
const (
	NoReason    Reason = iota
	Excluded           // the patterns leave out its file
	Skipped            // a file or directory that may be its source was skipped or cannot be read
	Temporary          // it may be part of an upload that is under way
	SavedUpload        // it may be a saved upload
	Folder             // it is empty, and its name ends in a slash: a folder in the Cloud console
	Appeared           // its file was made during the run
)

var reasonNames = [...]string{NoReason: "", Excluded: "excluded", Skipped: "skipped", Temporary: "temporary", SavedUpload: "saved_upload", Folder: "folder", Appeared: "appeared"}

// String returns the name of r in snake case.
func (r Reason) String() string { return reasonNames[r] }

// An Action is one step of a plan: one file, or one object without a file.
type Action struct {
	Kind   Kind
	Job    upload.Job      // of a file; Err is the error of Skip and Fail
	Object *session.Object // nil if there is none
	Reason Reason          // of Protect; of Delete: Excluded if it is deleted because of Options.DeleteExcluded
}

// An Outcome is what was done with one file, or one object without a file.
type Outcome struct {
	Kind    Kind            // Upload if this is about a file; otherwise Delete or Protect
	Result  *upload.Result  // of a file
	Object  *session.Object // of Delete and Protect: it has the fields Bucket, Name, Generation and Size
	Reason  Reason          // of Protect
	Planned bool            // of a deletion: it was not made (DryRun, or Check)
}
