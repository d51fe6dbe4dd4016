package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/upload/internal/content"
)

// Run makes a range of the source an object, through a session. After the loss of the session
// it opens another one.
type Run struct {
	*Transfer
	precondition *Precondition // nil if there is none to check
	state        session.State
	current      currentSession
}

// currentSession is what a run knows of its session.
type currentSession struct {
	uri      session.URI // zero before the session is opened
	opened   time.Time   // when the session was opened, by this machine's clock
	verified int64       // the offset up to which the server's checksum was last compared
	cut      chunk.Range // sent by a request that was cut; empty after a query has reported the committed offset
	resume   *Resumption // nil unless another process opened the session and the server has not reported how much it holds
}

// Resumption is a session that another process opened.
type Resumption struct {
	URI     session.URI
	Opened  time.Time
	Seek    func(ctx context.Context, offset int64) error // makes the content continue at the committed offset
	Resumed func(offset int64)                            // called after Seek
}

// NewRun returns a run that opens a session, or continues one in state s. p is nil if there is
// no precondition to check.
func NewRun(t *Transfer, p *Precondition, s session.State) *Run {
	return &Run{Transfer: t, precondition: p, state: s}
}

// ResumedRun is NewRun for a session of another process.
func ResumedRun(t *Transfer, p *Precondition, s session.State, from Resumption) *Run {
	return &Run{Transfer: t, precondition: p, state: s, current: currentSession{uri: from.URI, opened: from.Opened, resume: &from}}
}

// URI returns the URI of the session; zero before it is opened.
func (r *Run) URI() session.URI { return r.current.uri }

// Unmeasured makes Drive continue after the error of a measurement.
func (r *Run) Unmeasured() { r.measurement = nil }

// Unqueried reports whether the session is of another process, and the server has not reported
// how much it holds.
func (r *Run) Unqueried() bool { return r.current.resume != nil }

// Drive makes the object, through as many sessions as necessary. After it has failed, it may be
// called again, and continues.
func (r *Run) Drive(ctx context.Context) (*session.Object, error) {
	defer r.Risk.End()
	r.safe = r.Wire.Pos.Committed.Load()
	next := session.Action{Step: session.Begin}
	if r.current.resume != nil || !r.current.uri.IsZero() {
		next.Step = session.Query
	}
	a, err := r.Wire.Converse(ctx, r, next)
	return a.Object, err
}

// restart forgets the session that was lost. next begins another one. The exchange that showed the
// loss is reported before the restart.
func (r *Run) restart(ctx context.Context, next session.Action) (session.Action, error) {
	r.Wire.decided(&next)
	if ctx.Err() != nil {
		return next, context.Cause(ctx)
	}
	r.Wire.Pos.Sent.Store(0) // of the new session
	cause := next.Err.Cause()
	if r.Wire.Part > 0 {
		cause = fmt.Sprintf("part %d: %s", r.Wire.Part, cause)
	}
	r.Wire.Post(Note{Kind: Restarted, Cause: cause})
	r.Wire.Retry.Stake(r.Wire.Pos.Handed)
	r.content.Restart()
	if r.state.Size >= 0 { // otherwise the size is still not known
		r.state.Size = r.content.Total()
		r.Wire.Pos.Size.Store(r.state.Size)
	}
	r.current = currentSession{}
	return next, nil
}

// Perform makes one exchange.
func (r *Run) Perform(ctx context.Context, a session.Action) (session.Reply, error) {
	switch a.Step {
	case session.Begin:
		return r.start(ctx)
	case session.Send:
		return r.send(ctx)
	case session.Finish:
		return r.finalize(ctx)
	case session.Check:
		return r.checkObject(ctx, r.current.opened)
	default: // session.Query
		return r.query(ctx)
	}
}

// start opens a session.
func (r *Run) start(ctx context.Context) (session.Reply, error) {
	if err := r.precondition.Look(ctx, r.Wire); err != nil {
		return session.Reply{}, err
	}
	reply := r.Wire.Plain(ctx, session.OpStart, func(ctx context.Context, c *session.Client) session.Reply {
		return c.Start(ctx, r.Wire.Spec, r.content.Total())
	})
	if reply.URI.IsZero() {
		return reply, nil
	}
	r.current.uri, r.current.opened = reply.URI, time.Now()
	if err := r.precondition.Unmet(); err != nil {
		r.Wire.Drop(ctx, r.current.uri)
		return reply, err
	}
	r.record.Started(r.current.uri, r.state.Restarts)
	r.Wire.Post(Note{Kind: Started})
	return reply, nil
}

// send sends the next bytes, which may be the last.
func (r *Run) send(ctx context.Context) (session.Reply, error) {
	if err := r.precondition.Look(ctx, r.Wire); err != nil {
		return session.Reply{}, err
	}
	if err := r.precondition.Unmet(); err != nil {
		return session.Reply{}, err
	}
	p, err := r.content.Next(ctx, r.state.Committed, r.Wire.memory.sizer.size())
	if err != nil {
		return session.Reply{}, SourceFailed(ctx, err)
	}
	if err := r.mayBeSent(ctx, p); err != nil {
		return session.Reply{}, errors.Join(err, p.Finish())
	}
	if !r.begun {
		if r.Risk.Take(ctx) != nil {
			return session.Reply{}, errors.Join(NewInterruption(ctx, nil), p.Finish())
		}
		r.begun = true
	} else {
		// What has begun continues beyond the bound: those who have its bytes may wait for this retry.
		r.Risk.HoldUnknown()
	}
	if p.Last {
		r.state.Size = p.To
		r.Wire.Pos.Size.Store(p.To)
	}
	if err := r.record.Sending(ctx, r.state.Committed, r.Wire.Pos.Sent.Load(), p.To); err != nil {
		return session.Reply{}, errors.Join(err, p.Finish())
	}
	r.Wire.Pos.Sent.Store(p.From)
	began := time.Now()
	reply := r.transmit(ctx, p)
	took := time.Since(began)
	// A file continues at once, and nothing else may begin in between. A stream may wait for its source, a failed request
	// for its retry.
	if !reply.Open() || reply.Committed < p.To || r.content.Total() < 0 {
		r.Risk.End()
	}
	r.Wire.Handed(p.From, reply.Sent)
	r.state.Sent = max(r.state.Sent, reply.Sent) // even if no decision follows
	if err := p.Finish(); err != nil {
		return session.Reply{}, SourceFailed(ctx, err)
	}
	if err := r.measurement.failed(); err != nil {
		r.Wire.memory.stale.Store(false) // the connection broke because the body ended
		return reply, err
	}
	held, open := reply.Committed, reply.Open()
	if !open || held < p.To {
		r.measurement.again()
	}
	switch {
	case p.Last:
	case open && held >= p.To:
		r.Wire.memory.sizer.passed(p.Len(), took)
	case !open && reply.Sent > p.From:
		r.current.cut = chunk.Range{From: p.From, To: reply.Sent}
	}
	return reply, nil
}

// mayBeSent checks what the caller expects of the source. The object exists after the last
// part was sent.
func (r *Run) mayBeSent(ctx context.Context, p content.Body) error {
	if err := r.Expect.exceeded(p.To); err != nil || !p.Last {
		return err
	}
	if err := r.Expect.CheckEnd(ctx, p.To); err != nil {
		return err
	}
	return ExpectCRC32C(r.Wire.Spec, p.CRC32C)
}

// transmit makes the request that carries p.
func (r *Run) transmit(ctx context.Context, p content.Body) session.Reply {
	body := newMeter(p.Reader, r.Transfer, true)
	defer body.Close()
	if p.Last {
		return r.Wire.finalize(ctx, r.current.uri, p.Range, p.CRC32C, body)
	}
	body.record = r.record
	return r.Wire.Send(ctx, session.OpPut, p.From, body, func(ctx context.Context, c *session.Client, body io.Reader) session.Reply {
		return c.Put(ctx, r.current.uri, p.Range, r.content.Total(), body)
	})
}

// query requests the committed offset. The earlier process of an adopted session may
// have sent more than it could save. A greater offset is therefore accepted if the
// checksum is that of the source.
func (r *Run) query(ctx context.Context) (session.Reply, error) {
	reply := r.Wire.Query(ctx, r.current.uri)
	if held := reply.Committed; !r.state.Adopted || !reply.Open() || held <= r.state.Sent || held > r.state.Size {
		return reply, nil
	}
	verdict, err := r.content.Compare(ctx, prefix(reply), true)
	if err != nil {
		return reply, SourceFailed(ctx, err)
	}
	if verdict == content.Same {
		r.state.Sent = reply.Committed
	}
	return reply, nil
}

// finalize finalizes a session whose bytes are all committed.
func (r *Run) finalize(ctx context.Context) (session.Reply, error) {
	if err := r.Expect.CheckEnd(ctx, r.state.Size); err != nil {
		return session.Reply{}, err
	}
	whole, err := r.content.Whole(ctx)
	if err != nil {
		return session.Reply{}, SourceFailed(ctx, err)
	}
	if err := ExpectCRC32C(r.Wire.Spec, whole.CRC32C); err != nil {
		return session.Reply{}, err
	}
	end := chunk.Range{From: r.state.Size, To: r.state.Size}
	return r.Wire.finalize(ctx, r.current.uri, end, whole.CRC32C, nil), nil
}

// HandleReply compares the checksums in the reply with the source, and returns the
// action of the decision table.
func (r *Run) HandleReply(ctx context.Context, reply session.Reply) (session.Action, error) {
	if err := r.refusedMD5(ctx, reply); err != nil {
		return session.Action{}, err
	}
	if o := reply.Object; o != nil && reply.Op != session.OpStat && r.content.Total() >= 0 {
		whole, err := r.content.Whole(ctx)
		if err != nil {
			return session.Action{}, SourceFailed(ctx, err)
		}
		_, differs := VerifyObject(o, r.Wire.Spec, whole.Offset, whole.CRC32C)
		reply.Differs, reply.Err = differs != nil, differs
	}
	before := r.state
	action, lost := r.decide(reply)
	if lost {
		return r.restart(ctx, action)
	}

	// A session that opens at the first try, or a query that is answered, is not a
	// success: both are possible while data is refused.
	reopened := reply.Op == session.OpStart && !reply.URI.IsZero() && len(r.Wire.Retry.history) > 0
	if reopened || action.Step == session.Done || r.state.Committed > before.Committed {
		r.Wire.Retry.Succeeded()
	}
	if !reply.Open() || action.Step == session.Fail {
		return action, nil
	}
	if reply.Op == session.OpQuery && r.current.cut.Len() > 0 {
		r.Wire.memory.sizer.cut(r.current.cut.Len(), r.state.Committed > r.current.cut.From)
		r.current.cut = chunk.Range{}
	}
	if from := r.current.resume; from != nil && !action.Wait {
		r.current.resume = nil
		if err := from.Seek(ctx, r.state.Committed); err != nil {
			return action, SourceFailed(ctx, err)
		}
		r.Wire.Pos.Sent.Store(r.state.Committed)
		r.safe = r.state.Committed
		from.Resumed(r.state.Committed)
	}
	if r.state.Committed > before.Committed {
		r.progressed()
	}
	if !action.Wait {
		// The first request of an adopted session is a query. From its reply on, this process knows which bytes were sent.
		r.state.Adopted = false
	}
	if differs, err := r.verify(ctx, reply); differs != nil {
		reply.Differs, reply.Err = true, differs
		if action, lost = r.decide(reply); lost {
			return r.restart(ctx, action)
		}
		return action, nil
	} else if err != nil {
		return action, err
	}
	r.content.Committed(r.state.Committed)
	return action, nil
}

// decide returns the action of the decision table. lost reports that the session is lost, and that the action begins
// another one.
func (r *Run) decide(reply session.Reply) (action session.Action, lost bool) {
	restarts := r.state.Restarts
	r.state.Replayable = r.content.Replayable()
	r.state, action = session.Decide(r.state, reply)
	r.Wire.Pos.Committed.Store(r.state.Committed)
	return action, r.state.Restarts > restarts
}

// progressed records that the server has committed more bytes.
func (r *Run) progressed() {
	r.Wire.Progressed()
	r.Wire.Retry.Budget.Progressed()
	r.Wire.Retry.Stake(r.state.Committed)
	r.isSafe(r.state.Committed)
	r.Wire.Pos.Sent.Store(max(r.Wire.Pos.Sent.Load(), r.state.Committed))
	r.Wire.uplink.Notes.Committed()
}

// verify compares the server's checksum of the committed bytes with that of the
// source, so that damage is detected early and not only at the end. differs is the
// error if they differ although the source is unchanged.
func (r *Run) verify(ctx context.Context, reply session.Reply) (differs, err error) {
	offset := reply.Committed
	if offset != r.state.Committed || offset == r.current.verified {
		return nil, nil
	}
	p := prefix(reply)
	switch verdict, _ := r.content.Compare(ctx, p, false); verdict { // the next reader of the bytes reports an error
	case content.Unknown:
		return nil, nil
	case content.Different:
		if err := r.content.Changed(ctx, offset); err != nil {
			return nil, SourceFailed(ctx, err)
		}
		differs = fmt.Errorf("the %v at the server is not that of the source", p)
	}
	r.current.verified = offset
	return differs, nil
}

// AskStored asks the service once what it stores, if the upload was interrupted while bytes were
// on their way. Their request has no reply, so that the committed offset may be far behind. The
// caller waits for the answer, at most for timeout. ok is false if the offset did not change.
func (r *Run) AskStored(ctx context.Context, timeout time.Duration) (ok bool) {
	_, sent, _, committed := r.Wire.Pos.Load()
	if ctx.Err() == nil || r.current.uri.IsZero() || r.Unqueried() || sent <= committed {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	reply := r.Wire.Query(ctx, r.current.uri)
	held := reply.Committed
	if !reply.Open() || held <= committed || held > sent {
		return false // the next call asks again
	}
	r.Wire.Pos.Committed.Store(held)
	return true
}

// prefix returns the checksum in a reply of the bytes before r.Committed. The service
// reports an MD5, and since 2026 a CRC32C. The MD5 is not computed while sending, because
// it costs more time than everything else. It is compared only after a query.
func prefix(r session.Reply) content.Prefix {
	p := content.Prefix{Offset: r.Committed, CRC32C: r.RunningCRC32C}
	if r.Op == session.OpQuery && r.RangeMD5 != nil {
		p.MD5 = r.RangeMD5
	}
	return p
}
