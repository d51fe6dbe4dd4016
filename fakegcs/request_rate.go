package fakegcs

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/ops"
	"gcsup/fakegcs/internal/writerate"
)

// defaultSplitAfter is the time in which the service wants a rate to double at most. How long it
// takes to divide a range is not documented, except that it is minutes
// (https://cloud.google.com/storage/docs/request-rate).
const defaultSplitAfter = 20 * time.Minute

func (o *Options) splitAfter() time.Duration { return cmp.Or(o.SplitAfter, defaultSplitAfter) }

// admitWrite returns an error if q changes an object, and its bucket gets too many such requests.
// The messages are those of the service: https://github.com/earth-mover/icechunk/issues/954 and
// https://github.com/firecrawl/firecrawl/pull/3601.
func (s *Server) admitWrite(q *request) *apiError {
	if s.writes == nil {
		return nil
	}
	bucket, object, ok := q.changes()
	if !ok {
		return nil
	}
	switch s.writes.Admit(s.now(), bucket, object) {
	case writerate.TooFast:
		return refuse(http.StatusTooManyRequests, "bucketRateLimitExceeded", "Your request-rate on the bucket has ramped up too fast. Please follow the guidance at https://cloud.google.com/storage/docs/conformance#ramp-up in order to avoid temporary limits on the bucket.")
	case writerate.TooUneven:
		return refuse(http.StatusTooManyRequests, "bucketRateLimitExceeded", "Your request distribution is too uneven across the key-ranges in your bucket. Please follow the guidance at https://cloud.google.com/storage/docs/conformance#naming-convention in order to avoid temporary limits on the bucket.")
	}
	return nil
}

// changes returns the object that q changes, or that the upload which q starts will change. It
// returns false for other requests. An upload of several requests thereby counts once.
func (q *request) changes() (bucket, object string, ok bool) {
	switch q.op {
	case faults.OpStart, faults.OpInsert:
		q.nameUpload()
	case faults.OpPartsStart, faults.OpDelete, faults.OpPatch, faults.OpCompose, ops.Restore:
	case ops.Move: // o/SOURCE/moveTo/o/OBJECT
		return q.bucket, q.rest[2], true
	case ops.Rewrite:
		if !q.xml && len(q.rest) >= 5 { // rewriteTo/b/BUCKET/o/OBJECT
			return q.rest[2], strings.Join(q.rest[4:], "/"), true
		}
	default:
		return "", "", false
	}
	return q.bucket, q.object, true
}
