package engine

import (
	"context"
	"errors"
	"sync/atomic"

	"gcsup/backoff"
	"gcsup/session"
	"gcsup/upload/internal/netconn"
)

// Requester makes the requests of an upload, or of one part of a file, and repeats them until
// their outcome is known. It has the state that outlives single requests and sessions.
type Requester struct {
	uplink *Uplink
	Part   int // the number of the part, from 1; 0 for the whole file
	Retry  *Retrier
	sizer  *requestSizer
	aim    intention
	socket atomic.Pointer[netconn.Socket] // of the request that sends object data; nil if it is not known
	stale  atomic.Bool                    // a request failed on a reused connection since the last progress
	Pos    *Position
}

// NewRequester returns a requester for a part of a file, with a number from 1, or for a whole
// file if part is 0. It reports its progress in pos. The caller must close its retrier.
func NewRequester(u *Uplink, part int, pos *Position) *Requester {
	q := &Requester{uplink: u, Part: part, Pos: pos, sizer: newRequestSizer(u.ChunkSize, u.CommitBytes, u.CommitTime)}
	q.Retry = &Retrier{Budget: u.Budget, post: q.Post}
	q.Retry.waiter.Policy, q.Retry.waiter.Gate = u.Policy, u.Gate
	q.Retry.waiter.Budget.For, q.Retry.waiter.Budget.Tries = u.Budget.rule.Time, u.Budget.rule.Tries
	return q
}

// Post reports something that happened to the part.
func (q *Requester) Post(n Note) {
	n.Part = q.Part
	q.uplink.Notes.Note(n)
}

// Progressed records that the server committed more bytes, or has answered with more.
func (q *Requester) Progressed() {
	q.Retry.Progressed()
	q.stale.Store(false)
}

// answered records the reply to a request.
func (q *Requester) answered(r session.Reply) {
	q.uplink.Tally.Requests.Add(1)
	if load := r.Load(); q.uplink.Place != nil && (load == session.LoadTooFast || load == session.LoadUnavailable) {
		q.uplink.Place.Refused()
	}
	q.Retry.attempts++
	q.aim.learn(r)
	if r.Reused && r.Lost() {
		q.stale.Store(true)
	}
}

// Handed records that a request handed the bytes between two offsets to the network.
func (q *Requester) Handed(from, to int64) {
	q.uplink.Tally.Resent.Add(max(0, min(to, q.Pos.Handed)-from))
	q.Pos.Handed = max(q.Pos.Handed, to)
	q.Pos.Sent.Store(to)
}

// To returns an exchanger for the object of spec.
func (q *Requester) To(spec session.Spec) *Exchanger { return &Exchanger{q, spec} }

// Hold holds a conversation, see [Retrier.Converse]. An interruption and a refusal are
// errors.
func (q *Requester) Hold(ctx context.Context, c Conversation, first session.Action) (session.Action, error) {
	a, err := q.Retry.Converse(ctx, c, first)
	switch {
	case err != nil && ctx.Err() != nil:
		if a.Err == nil || a.Err.Err == nil && a.Err.Status == 0 {
			return a, NewInterruption(ctx, nil)
		}
		return a, NewInterruption(ctx, a.Err)
	case err == nil && a.Step == session.Fail:
		err = q.Retry.Failure(a.Err, nil)
	}
	return a, err
}

// Ask makes the request of s until its outcome is known. The errors are those of
// [Requester.Hold]. The object of the action is nil if it is absent.
func (q *Requester) Ask(ctx context.Context, s session.Request, exchange func(context.Context) session.Reply) (session.Action, error) {
	return q.Hold(ctx, question{exchange, func(r session.Reply) (a session.Action) {
		s, a = session.DecideRequest(s, r)
		return a
	}}, session.Action{Step: session.Repeat})
}

// Refusal reports whether err, from [Requester.Ask], is a refusal of the service. The service was reached
// then, and the context is not done.
func Refusal(err error) bool {
	e, ok := err.(*session.Error)
	return ok && !errors.Is(e, session.ErrRetriesExhausted) && !errors.Is(e, backoff.ErrPermanent)
}

// SourceFailed returns the error of an upload whose source could not be read or has
// changed.
func (*Requester) SourceFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return NewInterruption(ctx, nil)
	}
	return SourceError(err)
}
