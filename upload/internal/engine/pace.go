package engine

import (
	"context"
	"fmt"
	"time"

	"gcsup/backoff"
	"gcsup/internal/bucket"
	"gcsup/internal/decide"
	"gcsup/internal/multipart"
	"gcsup/session"
)

// pace waits until the rate of the bucket allows the exchange, and returns the rate. It is nil for
// an exchange that is not paced. If ctx is done first, the error is its cause.
func (q *Requester) pace(ctx context.Context, x exchange) (*backoff.Rate, error) {
	if q.uplink.Rate == nil || !changes(x.op) {
		return nil, nil
	}
	rate := q.uplink.Rate(q.Spec.Bucket)
	waited, err := rate.Wait(ctx, len(q.Retry.history) > 0)
	q.uplink.Tally.Paced.Add(int64(waited))
	return rate, err
}

// changes reports whether the service counts the request in the rate of changes to the objects
// of a bucket (https://cloud.google.com/storage/docs/request-rate). An upload of several requests
// counts once, when it starts.
func changes(op session.Op) bool {
	switch op {
	case session.OpStart, session.OpInsert, multipart.OpStart, bucket.OpDelete, bucket.OpCompose:
		return true
	}
	return false
}

// judge passes what the reply to x shows about the load to the rate from pace. It reports when requests are
// paced from now on.
func (q *Requester) judge(rate *backoff.Rate, x exchange, r session.Reply) {
	q.Retry.regulated = rate != nil && decide.LoadOf(&r) == decide.LoadTooFast
	if rate == nil {
		return
	}
	switch decide.LoadOf(&r) {
	case decide.LoadAccepted:
		rate.Accepted(time.Now())
	case decide.LoadTooFast:
		if rate.Refused(time.Now()) {
			q.Post(Note{Kind: Warning, Cause: fmt.Sprintf(
				"the bucket %s refuses requests because there are too many: from now on at most %.0f per second are made, and more as they are accepted", q.Spec.Bucket, rate.PerSecond())})
		}
	}
}
