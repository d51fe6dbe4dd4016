package upload_test

import (
	"testing"

	"gcsup/upload"
)

// zippedOutcome counts what happened to compressed files that may be sent in parts.
type zippedOutcome struct {
	InParts int // completed in parts by the process that began
	Resumed int // completed in parts by another process
	Other   int // started over, because another version compressed the file
}

func (o *zippedOutcome) add(p zippedOutcome) {
	o.InParts += p.InParts
	o.Resumed += p.Resumed
	o.Other += p.Other
}

// ended counts an upload that ended with err.
func (o *zippedOutcome) ended(res *upload.Result, err error) {
	switch {
	case err != nil || res.Parts == nil:
	case res.Resumed && res.ResumedFrom > 0:
		o.Resumed++
	default:
		o.InParts++
	}
}

// check fails if the seeds did not have every kind of end.
func (o *zippedOutcome) check(t *testing.T, seeds uint64) {
	t.Helper()
	if seeds >= 64 && o.InParts+o.Resumed == 0 || seeds >= 500 && (o.InParts == 0 || o.Resumed == 0 || o.Other == 0) {
		t.Errorf("not all kinds of compressed files in parts: %+v", *o)
	}
}
