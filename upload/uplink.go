package upload

import (
	"context"
	"log/slog"
	"time"

	"gcsup/backoff"
	"gcsup/session"
	"gcsup/session/state"
)

// uplink is how the requests of one upload reach the service, and what they report to. The
// parts of a file share it. It does not change, except the lease.
type uplink struct {
	client  *session.Client
	stat    func(context.Context, Spec) session.Reply // reads the object at the destination
	policy  backoff.Policy
	gate    *backoff.Gate
	budget  *budget
	limit   link                // makes object data wait for the rate limit
	replied func(time.Duration) // called after a request without object data was answered

	chunkSize    int64
	commitEvery  CommitEvery
	stallTimeout time.Duration
	stallRate    int64

	events *events
	tally  *tally
	logger *slog.Logger
	named  func() []slog.Attr // names the upload in the log

	lease state.Lease // see needLease
}

// needLease makes requests only while a lease is valid. It is called when the lease of the
// saved upload is acquired, and with nil when another process has it and will not remove what
// the upload stored.
func (u *uplink) needLease(l state.Lease) { u.lease = l }
