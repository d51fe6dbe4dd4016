// Package result has the results of a run: the status of each file, its line of JSON and for people, and the
// totals. The topic json of the help describes the lines. No field holds a secret.
package result

import "gcsup/upload/tree"

// Status is the outcome of a file.
type Status string

// The statuses.
const (
	OK      Status = "ok"
	Skipped Status = "skipped"
	Failed  Status = "failed"
	Planned Status = "planned" // with --dry-run
)

// The statuses of a comparison, besides Skipped and Failed.
const (
	Same    Status = "same"
	Differs Status = "differs"
	Missing Status = "missing" // there is no object
	Extra   Status = "extra"   // there is no file
)

// File is a file of a run, or an entry of a directory that is not a file.
type File struct {
	Source, Destination string
	Entry               tree.Kind // of a skipped entry that is not a file
}
