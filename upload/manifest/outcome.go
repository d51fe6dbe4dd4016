package manifest

import (
	"context"
	"errors"
	"time"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
	"gcsup/upload"
	"gcsup/upload/internal/batch"
)

// NewRecord returns the record of a file whose upload ended with res and err. ok is false if there is
// nothing to record, because the next run must upload the file: it was not tried, was interrupted, or was
// skipped by its time and has changed since.
func NewRecord(res *upload.Result, err error) (r Record, ok bool) {
	if _, interrupted := errors.AsType[*upload.InterruptedError](err); interrupted || errors.Is(err, upload.ErrNotTried) || errors.Is(err, context.Canceled) {
		return Record{}, false
	}
	r = Record{Status: Done, Path: res.Path, Source: res.Source, Bucket: res.Spec.Bucket, Object: res.Spec.Object}
	switch {
	case err != nil:
		r.Status, r.Reason = Failed, err.Error()
		return r, true
	case res.Skipped != upload.SkipNothing:
		r.Status = Skipped
		if r.Source == (chunk.Identity{}) { // it was not opened
			r.Source, _ = sourcefile.StatIdentity(res.Path)
			modified := time.Unix(0, r.Source.ModTimeNS)
			if res.Skipped == upload.SkipSameTime && (res.Object == nil || batch.CompareTime(res.Spec.Gzip, r.Source.Size, modified, res.Object) != batch.SameTime) {
				return Record{}, false // it was changed after the walk
			}
		}
	}
	if o := res.Object; o != nil {
		r.Generation, r.CRC32C, r.HasCRC32C = o.Generation, o.CRC32C, o.HasCRC32C
	}
	return r, true
}
