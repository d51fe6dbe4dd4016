package upload

import (
	"context"
	"errors"
	"sync/atomic"

	"gcsup/backoff"
	"gcsup/session"
)

// requester makes the requests of an upload, or of one part of a file, and repeats them until
// their outcome is known. It has the state that outlives single requests and sessions.
type requester struct {
	uplink *uplink
	part   int // the number of the part, from 1; 0 for the whole file
	retry  *retrier
	sizer  *requestSizer
	aim    intention
	stale  atomic.Bool // a request failed on a reused connection since the last progress
	pos    *position
}

// newRequester returns a requester for a part of a file, with a number from 1, or for a whole
// file if part is 0. It reports its progress in pos. The caller must
// close its retrier.
func newRequester(u *uplink, part int, pos *position) *requester {
	q := &requester{uplink: u, part: part, pos: pos, sizer: newRequestSizer(u.chunkSize, u.commitBytes, u.commitTime)}
	q.retry = newRetrier(u.policy, u.gate, u.budget, q.post)
	return q
}

// post reports something that happened to the part.
func (q *requester) post(n note) {
	n.part = q.part
	q.uplink.notes.note(n)
}

// progressed records that the server committed more bytes, or has answered with more.
func (q *requester) progressed() {
	q.retry.progressed()
	q.stale.Store(false)
}

// answered records the reply to a request.
func (q *requester) answered(r session.Reply) {
	q.uplink.tally.requests.Add(1)
	q.retry.attempts++
	q.aim.learn(r)
	if r.Reused && r.Status == 0 {
		q.stale.Store(true)
	}
}

// handed records that a request handed the bytes between two offsets to the network.
func (q *requester) handed(from, to int64) {
	q.uplink.tally.resent.Add(max(0, min(to, q.pos.handed)-from))
	q.pos.handed = max(q.pos.handed, to)
	q.pos.sent.Store(to)
}

// to returns an exchanger for the object of spec.
func (q *requester) to(spec session.Spec) *exchanger { return &exchanger{q, spec} }

// converse holds a conversation, see [retrier.converse]. An interruption and a refusal are
// errors.
func (q *requester) converse(ctx context.Context, c conversation, first session.Action) (session.Action, error) {
	a, err := q.retry.converse(ctx, c, first)
	switch {
	case err != nil:
		return a, q.stopped(ctx, err, a.Err)
	case a.Step == session.Fail:
		return a, q.retry.failure(a.Err, nil)
	}
	return a, nil
}

// ask makes a request until its outcome is known. The errors are those of converse. The
// object of the action is nil if it is absent.
func (q *requester) ask(ctx context.Context, exchange func(context.Context) session.Reply) (session.Action, error) {
	return q.converse(ctx, &request{exchange: exchange}, session.Action{Step: session.Repeat})
}

// askKnown is [requester.ask] for something that the service has, or had. A second answer must confirm
// that it does not.
func (q *requester) askKnown(ctx context.Context, exchange func(context.Context) session.Reply) (session.Action, error) {
	return q.converse(ctx, &request{exchange, session.Request{Known: true}}, session.Action{Step: session.Repeat})
}

// refusal reports whether err, from [requester.ask], is a refusal of the service. The service was reached
// then, and the context is not done.
func refusal(err error) bool {
	e, ok := err.(*session.Error)
	return ok && !errors.Is(e, session.ErrRetriesExhausted) && !errors.Is(e, backoff.ErrPermanent)
}

// stopped returns err, the error of a wait, or an [*interruption] if ctx is done. last is the last
// failure before that.
func (*requester) stopped(ctx context.Context, err error, last *session.Error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case last == nil || last.Err == nil && last.Status == 0:
		return newInterruption(ctx, nil)
	}
	return newInterruption(ctx, last)
}

// sourceFailed returns the error of an upload whose source could not be read or has
// changed.
func (*requester) sourceFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return newInterruption(ctx, nil)
	}
	return sourceError(err)
}
