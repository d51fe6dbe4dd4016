package upload

import (
	"context"
	"time"

	"gcsup/backoff"
	"gcsup/session"
)

// uplink is how the requests of one upload reach the service, and what they report to. The
// parts of a file share it. It does not change, except the permit.
type uplink struct {
	client  *session.Client
	stat    func(context.Context, session.Spec) session.Reply // reads the object at the destination
	policy  backoff.Policy
	gate    *backoff.Gate
	budget  *budget
	limit   *rateShare          // nil if there is no limit
	replied func(time.Duration) // called after a request without object data was answered; may be nil

	chunkSize    int64         // maximum size of a request; 0 means no limit
	commitBytes  int64         // after which a durable offset is requested, or 0
	commitTime   time.Duration // the same
	stallTimeout time.Duration
	stallRate    int64

	notes notes
	tally *tally

	lease permit // nil if the requests need none
}

// permit allows requests while it is valid.
type permit interface {
	// Begin returns the context of a request. The caller must call end after the request.
	Begin(ctx context.Context) (request context.Context, end context.CancelFunc, err error)

	// Context ends when the permit is lost. Its cause is the reason.
	Context() context.Context
}

// needLease makes requests only while p is valid. It is called when the lease of the saved
// upload is acquired, and with nil when another process has it and will not remove what the
// upload stored.
func (u *uplink) needLease(p permit) { u.lease = p }
