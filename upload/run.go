package upload

import (
	"context"
	"errors"
	"io"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// run drives one session until its range of the source is an object, or the
// session is lost. It holds what dies with the session, and nothing else: after
// the loss the job makes a new run.
type run struct {
	*transfer
	precondition *precondition // nil if there is none to check

	uri      session.URI // zero before the session is opened
	state    session.State
	verified int64       // the offset up to which the server's checksum was last compared
	cut      chunk.Range // sent by a request that broke off; empty once a query told what was kept

	// resume is called with the committed offset when the server has reported
	// how much it holds of a session that another process opened. It is nil
	// before and after that.
	resume func(ctx context.Context, committed int64) error
}

// sessionLost ends a run whose session is gone from the service. It says how to
// start over.
type sessionLost struct {
	state session.State // for the next run
	next  session.Action
	cause string
}

func (e *sessionLost) Error() string { return "session lost: " + e.cause }

// perform makes one exchange.
func (r *run) perform(ctx context.Context, step session.Kind) (session.Reply, error) {
	switch step {
	case session.Begin:
		return r.start(ctx)
	case session.Send:
		return r.send(ctx)
	case session.Finish:
		return r.finish(ctx)
	case session.Check:
		return r.stat(ctx)
	default:
		return r.wire.query(ctx, r.uri), nil
	}
}

// start opens a session.
func (r *run) start(ctx context.Context) (session.Reply, error) {
	if err := r.precondition.check(ctx); err != nil {
		return session.Reply{}, err
	}
	reply := r.wire.start(ctx, r.content.total())
	if reply.URI.IsZero() {
		return reply, nil
	}
	r.uri = reply.URI
	if err := r.precondition.unmet(); err != nil {
		r.drop(ctx, r.uri)
		return reply, err
	}
	r.record.started(r.uri, r.state.Restarts)
	r.events.post(Event{Kind: Started})
	return reply, nil
}

// send sends the next part, which may be the last.
func (r *run) send(ctx context.Context) (session.Reply, error) {
	if err := r.precondition.check(ctx); err != nil {
		return session.Reply{}, err
	}
	if err := r.precondition.unmet(); err != nil {
		return session.Reply{}, err
	}
	p, err := r.content.part(ctx, r.state.Committed, r.sizer.size())
	if err != nil {
		return session.Reply{}, r.sourceFailed(ctx, err)
	}
	if p.last {
		// The last moment: after this request the object is there.
		if err := r.content.unchanged(ctx); err != nil {
			return session.Reply{}, errors.Join(r.sourceFailed(ctx, err), p.finish())
		}
		r.state.Size = p.To
		r.pos.size.Store(p.To)
	}
	if err := r.record.sending(ctx, r.state.Committed, p.To); err != nil {
		return session.Reply{}, errors.Join(err, p.finish())
	}
	r.pos.sent.Store(p.From)
	began := time.Now()
	reply := r.transmit(ctx, p)
	took := time.Since(began)
	if err := r.record.sent(); err != nil {
		r.events.post(Event{Kind: Warning, Cause: err.Error()})
	}
	r.tally.count(&r.pos, p.From, reply.Sent)
	if err := p.finish(); err != nil {
		return session.Reply{}, r.sourceFailed(ctx, err)
	}
	switch {
	case p.last:
	case reply.Status == 308 && reply.Committed >= p.To:
		r.sizer.passed(p.Len(), took)
	case reply.Status != 308 && reply.Sent > p.From:
		r.cut = chunk.Range{From: p.From, To: reply.Sent}
	}
	return reply, nil
}

// transmit makes the request that carries p.
func (r *run) transmit(ctx context.Context, p part) session.Reply {
	body := &meter{r: p.body, t: r.transfer}
	if p.last {
		return r.wire.finalize(ctx, r.uri, p.Range, p.crc32c, body)
	}
	body.hashed = r.record.hashed
	return r.wire.put(ctx, r.uri, p.Range, r.content.total(), body)
}

// finish ends a session that holds all bytes.
func (r *run) finish(ctx context.Context) (session.Reply, error) {
	crc, err := r.content.whole(ctx)
	if err != nil {
		return session.Reply{}, r.sourceFailed(ctx, err)
	}
	end := chunk.Range{From: r.state.Size, To: r.state.Size}
	return r.wire.finalize(ctx, r.uri, end, crc, nil), nil
}

// handleReply asks the decision table what to do, and compares what the reply
// reports of the bytes with the source.
func (r *run) handleReply(ctx context.Context, reply session.Reply) (session.Action, error) {
	before := r.state
	r.state.Replayable = r.content.replayable()
	var action session.Action
	r.state, action = session.Decide(r.state, reply)

	opened := reply.Op == session.OpStart && !reply.URI.IsZero()
	if opened || action.Kind == session.Done || r.state.Committed > before.Committed {
		// Not for a query that is answered while data is refused.
		r.retry.succeeded()
	}
	r.pos.committed.Store(r.state.Committed)
	if r.state.Restarts > before.Restarts {
		return action, &sessionLost{state: r.state, next: action, cause: reply.Cause()}
	}
	if reply.Status != 308 || action.Kind == session.Fail {
		return action, nil
	}
	if reply.Op == session.OpQuery && r.cut.Len() > 0 {
		r.sizer.cut(r.cut.Len(), r.state.Committed > r.cut.From)
		r.cut = chunk.Range{}
	}
	if r.resume != nil && !action.Wait {
		if err := r.resume(ctx, r.state.Committed); err != nil {
			return action, err
		}
		r.resume = nil
	}
	if r.state.Committed > before.Committed {
		r.progressed()
	}
	if err := r.verify(ctx, reply); err != nil {
		return action, err
	}
	r.content.committed(r.state.Committed)
	return action, nil
}

// progressed notes that the server holds more than before.
func (r *run) progressed() {
	r.retry.progressed()
	r.retry.stake(r.state.Committed)
	r.pos.sent.Store(max(r.pos.sent.Load(), r.state.Committed))
	r.events.progress()
}

// verify compares the server's checksum of what it holds with the source's, so
// that damage is noticed at the first reply after it and not at the end.
func (r *run) verify(ctx context.Context, reply session.Reply) error {
	offset := reply.Committed
	if offset <= 0 || offset != r.state.Committed || offset == r.verified {
		return nil
	}
	compared, err := verifyPrefix(ctx, r.content, reply)
	if compared {
		r.verified = offset
	}
	if e, ok := errors.AsType[*session.Error](err); ok {
		return r.retry.failure(e, nil)
	}
	if err != nil {
		return r.sourceFailed(ctx, err)
	}
	return nil
}

// sourceFailed is [transfer.sourceFailed]. A stream that failed can never be
// finished, so the service need not keep its bytes.
func (r *run) sourceFailed(ctx context.Context, err error) error {
	if ctx.Err() == nil && !r.content.rereadable() {
		r.drop(ctx, r.uri)
	}
	return r.transfer.sourceFailed(ctx, err)
}

// meter counts the bytes of a request on their way to the network.
type meter struct {
	r      io.Reader
	t      *transfer
	hashed func() // called when more of the source was hashed; may be nil
	n      int64
}

// flowing is how much of a request must have been sent before it counts as a
// success of the service: more than the buffers on the way hold.
const flowing = 16 << 20

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.t.pos.sent.Add(int64(n))
	if m.hashed != nil {
		m.hashed()
	}
	if m.n += int64(n); m.n >= flowing && m.n-int64(n) < flowing {
		m.t.retry.succeeded()
	}
	m.t.events.flowing()
	return n, err
}
