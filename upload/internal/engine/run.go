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
// it opens another one, and has only the state of that.
type Run struct {
	*Transfer
	precondition *Precondition // nil if there is none to check

	URI      session.URI // zero before the session is opened
	opened   time.Time   // when the session was opened, by this machine's clock
	state    session.State
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
	return &Run{Transfer: t, precondition: p, state: s, URI: from.URI, opened: from.Opened, resume: &from}
}

// Unmeasured makes Drive continue after the error of a measurement.
func (r *Run) Unmeasured() { r.measurement = nil }

// Unqueried reports whether the session is of another process, and the server has not reported
// how much it holds.
func (r *Run) Unqueried() bool { return r.resume != nil }

// Drive makes the object, through as many sessions as necessary. After it has failed, it may be
// called again, and continues.
func (r *Run) Drive(ctx context.Context) (*session.Object, error) {
	defer r.Risk.End()
	r.safe = r.Pos.Committed.Load()
	next := session.Action{Step: session.Begin}
	if r.resume != nil || !r.URI.IsZero() {
		next.Step = session.Query
	}
	for {
		a, err := r.Hold(ctx, r, next)
		lost, ok := err.(*sessionLost)
		if !ok {
			return a.Object, err
		}
		r.restart(lost)
		next = lost.next
	}
}

// sessionLost ends the conversation about a session that no longer exists.
type sessionLost struct {
	state session.State // for the next session
	next  session.Action
}

func (e *sessionLost) Error() string { return "session lost: " + e.next.Err.Cause() }

// restart makes r the run of the next session.
func (r *Run) restart(lost *sessionLost) {
	r.Pos.Sent.Store(0) // of the new session
	cause := lost.next.Err.Cause()
	if r.Part > 0 {
		cause = fmt.Sprintf("part %d: %s", r.Part, cause)
	}
	r.Post(Note{Kind: Restarted, Cause: cause})
	r.Retry.Stake(r.Pos.Handed)
	r.content.Restart()
	if lost.state.Size >= 0 { // otherwise the size is still not known
		lost.state.Size = r.content.Total()
		r.Pos.Size.Store(lost.state.Size)
	}
	*r = *NewRun(r.Transfer, r.precondition, lost.state)
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
		return r.checkObject(ctx, r.opened)
	default:
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
	r.URI, r.opened = reply.URI, time.Now()
	if err := r.precondition.Unmet(); err != nil {
		r.Wire.Drop(ctx, r.URI)
		return reply, err
	}
	r.record.Started(r.URI, r.state.Restarts)
	r.Post(Note{Kind: Started})
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
	p, err := r.content.Next(ctx, r.state.Committed, r.sizer.size())
	if err != nil {
		return session.Reply{}, r.SourceFailed(ctx, err)
	}
	if err := r.mayBeSent(ctx, p); err != nil {
		return session.Reply{}, errors.Join(err, p.Finish())
	}
	if !r.begun {
		if r.Risk.Take(ctx) != nil {
			return session.Reply{}, errors.Join(NewInterruption(ctx, nil), p.Finish())
		}
		r.begun = true
	}
	if p.Last {
		r.state.Size = p.To
		r.Pos.Size.Store(p.To)
	}
	if err := r.record.Sending(ctx, r.state.Committed, r.Pos.Sent.Load(), p.To); err != nil {
		return session.Reply{}, errors.Join(err, p.Finish())
	}
	r.Pos.Sent.Store(p.From)
	began := time.Now()
	reply := r.transmit(ctx, p)
	took := time.Since(began)
	r.Handed(p.From, reply.Sent)
	if err := p.Finish(); err != nil {
		return session.Reply{}, r.SourceFailed(ctx, err)
	}
	if err := r.measurement.failed(); err != nil {
		r.stale.Store(false) // the connection broke because the body ended
		r.state.Sent = max(r.state.Sent, reply.Sent)
		return reply, err
	}
	held, open := reply.Held()
	if !open || held < p.To {
		r.measurement.again()
	}
	switch {
	case p.Last:
	case open && held >= p.To:
		r.sizer.passed(p.Len(), took)
	case !open && reply.Sent > p.From:
		r.cut = chunk.Range{From: p.From, To: reply.Sent}
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
		return r.Wire.finalize(ctx, r.URI, p.Range, p.CRC32C, body)
	}
	body.record = r.record
	return r.Wire.Send(ctx, session.OpPut, p.From, body, func(ctx context.Context, c *session.Client, body io.Reader) session.Reply {
		return c.Put(ctx, r.URI, p.Range, r.content.Total(), body)
	})
}

// query requests the committed offset. The earlier process of an adopted session may
// have sent more than it could save. A greater offset is therefore accepted if the
// checksum is that of the source.
func (r *Run) query(ctx context.Context) (session.Reply, error) {
	reply := r.Wire.Query(ctx, r.URI)
	if held, open := reply.Held(); !r.state.Adopted || !open || held <= r.state.Sent || held > r.state.Size {
		return reply, nil
	}
	verdict, err := r.content.Compare(ctx, prefix(reply), true)
	if err != nil {
		return reply, r.SourceFailed(ctx, err)
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
		return session.Reply{}, r.SourceFailed(ctx, err)
	}
	if err := ExpectCRC32C(r.Wire.Spec, whole.CRC32C); err != nil {
		return session.Reply{}, err
	}
	end := chunk.Range{From: r.state.Size, To: r.state.Size}
	return r.Wire.finalize(ctx, r.URI, end, whole.CRC32C, nil), nil
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
			return session.Action{}, r.SourceFailed(ctx, err)
		}
		_, differs := VerifyObject(o, r.Wire.Spec, whole.Offset, whole.CRC32C)
		reply.Differs, reply.Err = differs != nil, differs
	}
	before := r.state
	action, err := r.decide(reply)
	if err != nil {
		return action, err
	}

	// A session that opens at the first try, or a query that is answered, is not a
	// success: both are possible while data is refused.
	reopened := reply.Op == session.OpStart && !reply.URI.IsZero() && len(r.Retry.history) > 0
	if reopened || action.Step == session.Done || r.state.Committed > before.Committed {
		r.Retry.Succeeded()
	}
	if _, open := reply.Held(); !open || action.Step == session.Fail {
		return action, nil
	}
	if reply.Op == session.OpQuery && r.cut.Len() > 0 {
		r.sizer.cut(r.cut.Len(), r.state.Committed > r.cut.From)
		r.cut = chunk.Range{}
	}
	if from := r.resume; from != nil && !action.Wait {
		r.resume = nil
		if err := from.Seek(ctx, r.state.Committed); err != nil {
			return action, r.SourceFailed(ctx, err)
		}
		r.Pos.Sent.Store(r.state.Committed)
		r.safe = r.state.Committed
		from.Resumed(r.state.Committed)
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
	r.content.Committed(r.state.Committed)
	return action, nil
}

// decide returns the action of the decision table. Its error is a *[sessionLost].
func (r *Run) decide(reply session.Reply) (session.Action, error) {
	restarts := r.state.Restarts
	r.state.Replayable = r.content.Replayable()
	var action session.Action
	r.state, action = session.Decide(r.state, reply)
	r.Pos.Committed.Store(r.state.Committed)
	if r.state.Restarts > restarts {
		return action, &sessionLost{r.state, action}
	}
	return action, nil
}

// progressed records that the server has committed more bytes.
func (r *Run) progressed() {
	r.Requester.Progressed()
	r.Retry.Budget.Progressed()
	r.Retry.Stake(r.state.Committed)
	r.isSafe(r.state.Committed)
	r.Pos.Sent.Store(max(r.Pos.Sent.Load(), r.state.Committed))
	r.uplink.Notes.Committed()
}

// verify compares the server's checksum of the committed bytes with that of the
// source, so that damage is detected early and not only at the end. differs is the
// error if they differ although the source is unchanged.
func (r *Run) verify(ctx context.Context, reply session.Reply) (differs, err error) {
	offset := reply.Committed
	if offset <= 0 || offset != r.state.Committed || offset == r.verified {
		return nil, nil
	}
	p := prefix(reply)
	switch verdict, _ := r.content.Compare(ctx, p, false); verdict { // the next reader of the bytes reports an error
	case content.Unknown:
		return nil, nil
	case content.Different:
		if err := r.content.Changed(ctx, offset); err != nil {
			return nil, r.SourceFailed(ctx, err)
		}
		differs = fmt.Errorf("the %v at the server is not that of the source", p)
	}
	r.verified = offset
	return differs, nil
}

// Grace bounds the requests after an upload was canceled, so that the call can report their
// outcome before it returns.
const Grace = 1500 * time.Millisecond

// AskStored asks the service once what it stores, if the upload was interrupted while bytes were
// on their way. Their request has no reply, so that the committed offset may be far behind. The
// caller waits for the answer, at most for timeout. ok is false if the offset did not change.
func (r *Run) AskStored(ctx context.Context, timeout time.Duration) (ok bool) {
	_, sent, _, committed := r.Pos.Load()
	if ctx.Err() == nil || r.URI.IsZero() || r.Unqueried() || sent <= committed {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	reply := r.Wire.Query(ctx, r.URI)
	held, open := reply.Held()
	if !open || held <= committed || held > sent {
		return false // the next call asks again
	}
	r.Pos.Committed.Store(held)
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
