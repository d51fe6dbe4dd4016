package upload

import (
	"context"
	"errors"
	"io"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// run drives one session until its range of the source is an object, or the session
// is lost. It has only the state of this session: after the loss, the job makes a new
// run.
type run struct {
	*transfer
	precondition *precondition // nil if there is none to check

	uri      session.URI // zero before the session is opened
	opened   time.Time   // when the session was opened, by this machine's clock
	state    session.State
	verified int64       // the offset up to which the server's checksum was last compared
	cut      chunk.Range // sent by a request that was cut; empty after a query has reported the committed offset

	// resume, if not nil, is called once, with the first committed offset that the server
	// reports for a session that another process opened.
	resume func(ctx context.Context, committed int64) error
}

// unqueried reports whether c continues a session of another process, and the server
// has not yet reported how much it holds.
func unqueried(c conversation) bool {
	r, ok := c.(*run)
	return ok && r.resume != nil
}

// sessionLost ends a run whose session no longer exists. It has the state for the
// next run.
type sessionLost struct {
	state session.State // for the next run
	next  session.Action
	cause string
}

func (e *sessionLost) Error() string { return "session lost: " + e.cause }

// perform makes one exchange.
func (r *run) perform(ctx context.Context, a session.Action) (session.Reply, error) {
	switch a.Step {
	case session.Begin:
		return r.start(ctx)
	case session.Send:
		return r.send(ctx)
	case session.Finish:
		return r.finish(ctx)
	case session.Check:
		return r.check(ctx)
	default:
		return r.query(ctx)
	}
}

// start opens a session.
func (r *run) start(ctx context.Context) (session.Reply, error) {
	if err := r.precondition.check(ctx, r.wire.spec); err != nil {
		return session.Reply{}, err
	}
	reply := r.wire.start(ctx, r.content.total())
	if reply.URI.IsZero() {
		return reply, nil
	}
	r.uri, r.opened = reply.URI, time.Now()
	if err := r.precondition.unmet(); err != nil {
		r.wire.drop(ctx, r.uri)
		return reply, err
	}
	r.record.started(r.uri, r.state.Restarts)
	r.events.post(Event{Kind: Started})
	return reply, nil
}

// send sends the next part, which may be the last.
func (r *run) send(ctx context.Context) (session.Reply, error) {
	if err := r.precondition.check(ctx, r.wire.spec); err != nil {
		return session.Reply{}, err
	}
	if err := r.precondition.unmet(); err != nil {
		return session.Reply{}, err
	}
	size := r.sizer.size()
	if r.checkRate != nil {
		size = min(size, firstBytes)
	}
	p, err := r.content.part(ctx, r.state.Committed, size)
	if err != nil {
		return session.Reply{}, r.sourceFailed(ctx, err)
	}
	if err := r.expect.exceeded(p.To); err != nil {
		return session.Reply{}, errors.Join(err, p.finish())
	}
	if p.last {
		if err := r.expect.ended(ctx, p.To); err != nil {
			return session.Reply{}, errors.Join(err, p.finish())
		}
		// Check this last, because the object exists after this request.
		if err := r.content.unchanged(ctx); err != nil {
			return session.Reply{}, errors.Join(r.sourceFailed(ctx, err), p.finish())
		}
		if err := expectCRC32C(r.wire.spec, p.crc32c); err != nil {
			return session.Reply{}, errors.Join(err, p.finish())
		}
		r.state.Size = p.To
		r.pos.size.Store(p.To)
	}
	if err := r.record.sending(ctx, r.state.Committed, r.pos.sent.Load(), p.To); err != nil {
		return session.Reply{}, errors.Join(err, p.finish())
	}
	r.pos.sent.Store(p.From)
	began := time.Now()
	reply := r.transmit(ctx, p)
	took := time.Since(began)
	r.tally.count(r.pos, p.From, reply.Sent)
	if err := p.finish(); err != nil {
		return session.Reply{}, r.sourceFailed(ctx, err)
	}
	held, open := reply.Held()
	switch {
	case p.last:
	case open && held >= p.To:
		r.sizer.passed(p.Len(), took)
		if checkRate := r.checkRate; checkRate != nil {
			r.checkRate = nil
			if err := checkRate(p.Len(), took); err != nil {
				return reply, err
			}
		}
	case !open && reply.Sent > p.From:
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
	body.record = r.record
	return r.wire.put(ctx, r.uri, p.Range, r.content.total(), body)
}

// query requests the committed offset. The earlier process of an adopted session may
// have sent more than it could save. A greater offset is therefore accepted if the
// checksum is that of the source.
func (r *run) query(ctx context.Context) (session.Reply, error) {
	reply := r.wire.query(ctx, r.uri)
	if held, open := reply.Held(); !r.state.Adopted || !open || held <= r.state.Sent || held > r.state.Size {
		return reply, nil
	}
	same, err := samePrefix(ctx, r.content, reply)
	if err != nil {
		return reply, r.sourceFailed(ctx, err)
	}
	if same {
		r.state.Sent = reply.Committed
	}
	return reply, nil
}

// check checks whether this session made the object at the destination. An object
// with the same bytes that is older than the session was not made by it.
func (r *run) check(ctx context.Context) (session.Reply, error) {
	reply, err := r.transfer.check(ctx)
	reply.Older = older(reply, r.opened)
	return reply, err
}

// finish finalizes a session whose bytes are all committed.
func (r *run) finish(ctx context.Context) (session.Reply, error) {
	if err := r.expect.ended(ctx, r.state.Size); err != nil {
		return session.Reply{}, err
	}
	crc, err := r.content.whole(ctx)
	if err != nil {
		return session.Reply{}, r.sourceFailed(ctx, err)
	}
	if err := expectCRC32C(r.wire.spec, crc); err != nil {
		return session.Reply{}, err
	}
	end := chunk.Range{From: r.state.Size, To: r.state.Size}
	return r.wire.finalize(ctx, r.uri, end, crc, nil), nil
}

// handleReply compares the checksums in the reply with the source, and returns the
// action of the decision table.
func (r *run) handleReply(ctx context.Context, reply session.Reply) (session.Action, error) {
	if err := r.refusedMD5(ctx, reply); err != nil {
		return session.Action{}, err
	}
	if o := reply.Object; o != nil && reply.Op != session.OpStat && r.content.total() >= 0 {
		crc, err := r.content.whole(ctx)
		if err != nil {
			return session.Action{}, r.sourceFailed(ctx, err)
		}
		_, differs := verifyObject(o, r.wire.spec, r.content.total(), crc)
		reply.Differs, reply.Err = differs != nil, differs
	}
	before := r.state
	action, err := r.decide(reply)
	if err != nil {
		return action, err
	}

	// A session that opens at the first try, or a query that is answered, is not a
	// success: both are possible while data is refused.
	reopened := reply.Op == session.OpStart && !reply.URI.IsZero() && len(r.retry.history) > 0
	if reopened || action.Step == session.Done || r.state.Committed > before.Committed {
		r.retry.succeeded()
	}
	if _, open := reply.Held(); !open || action.Step == session.Fail {
		return action, nil
	}
	if reply.Op == session.OpQuery && r.cut.Len() > 0 {
		r.sizer.cut(r.cut.Len(), r.state.Committed > r.cut.From)
		r.cut = chunk.Range{}
	}
	if r.resume != nil && !action.Wait {
		resume := r.resume
		r.resume = nil
		if err := resume(ctx, r.state.Committed); err != nil {
			return action, err
		}
	}
	if r.state.Committed > before.Committed {
		r.progressed()
	}
	if r.state.Adopted && reply.Op == session.OpQuery && !action.Wait {
		r.state.Adopted = false // from now on this process knows which bytes were sent
	}
	if differs, err := r.verify(ctx, reply); differs != nil {
		reply.Differs, reply.Err = true, differs
		return r.decide(reply)
	} else if err != nil {
		return action, err
	}
	r.content.committed(r.state.Committed)
	return action, nil
}

// decide returns the action of the decision table. Its error is a *[sessionLost].
func (r *run) decide(reply session.Reply) (session.Action, error) {
	restarts := r.state.Restarts
	r.state.Replayable = r.content.replayable()
	var action session.Action
	r.state, action = session.Decide(r.state, reply)
	r.pos.committed.Store(r.state.Committed)
	if r.state.Restarts > restarts {
		return action, &sessionLost{state: r.state, next: action, cause: action.Err.Cause()}
	}
	return action, nil
}

// progressed records that the server has committed more bytes.
func (r *run) progressed() {
	r.retry.progressed()
	r.retry.budget.progressed()
	r.line.stale.Store(false)
	r.retry.stake(r.state.Committed)
	r.pos.sent.Store(max(r.pos.sent.Load(), r.state.Committed))
	r.events.committed()
}

// verify compares the server's checksum of the committed bytes with that of the
// source, so that damage is detected early and not only at the end. differs is the
// error if they differ although the source is unchanged.
func (r *run) verify(ctx context.Context, reply session.Reply) (differs, err error) {
	offset := reply.Committed
	if offset <= 0 || offset != r.state.Committed || offset == r.verified {
		return nil, nil
	}
	compared, differs, err := verifyPrefix(ctx, r.content, reply)
	if compared {
		r.verified = offset
	}
	if err != nil {
		return nil, r.sourceFailed(ctx, err)
	}
	return differs, nil
}

// meter counts the bytes of a request on their way to the network.
type meter struct {
	r      io.Reader
	t      *transfer
	record record // nil if this request is not recorded
	n      int64
}

// flowing is the number of bytes of a request after which it counts as a success of
// the service. It is more than the buffers on the way can hold.
const flowing = 16 << 20

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	sent := m.t.pos.sent.Add(int64(n))
	m.t.tally.sent.Add(int64(n))
	if m.t.moved != nil {
		m.t.moved(int64(n))
	}
	if m.record != nil {
		m.record.handed(sent)
	}
	if m.n += int64(n); m.n >= flowing {
		if m.n-int64(n) < flowing {
			m.t.retry.succeeded()
		}
		m.t.retry.budget.progressed() // the buffers are full, so the service has received bytes
	}
	m.t.events.flowing()
	return n, err
}
