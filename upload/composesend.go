package upload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gcsup/session"
	"gcsup/upload/internal/source"
)

// name returns the name of the temporary object of a part.
func (p *composer) name(c *piece) string { return fmt.Sprintf("%s%04d", p.parts.Prefix, c.i) }

// spec returns the Spec of the temporary object of a part.
func (p *composer) spec(c *piece) Spec { return p.temporary(p.name(c)) }

// record returns a record of the session of a part.
func (p *composer) record(c *piece) record { return &pieceRecord{piece: c, journal: p.j.journal} }

// send uploads the temporary object of a part through a session.
func (p *composer) send(ctx context.Context, c *piece) error {
	t := c.transfer
	defer t.retry.close()
	r, action := c.newRun(session.State{Size: c.content.Total(), Temporary: true}), session.Action{Step: session.Begin}
	if c.saved != nil {
		r, action = c.resume(*c.saved), session.Action{Step: session.Query}
	}
	t.retry.stake(c.content.Total())
	for {
		object, err := t.drive(ctx, r, action)
		c.session = r.uri
		if lost, ok := errors.AsType[*sessionLost](err); ok {
			c.saved = nil
			t.pos.sent.Store(0)
			t.pos.committed.Store(0)
			t.events.post(Event{Kind: Restarted, Cause: fmt.Sprintf("part %d: %s", c.i+1, lost.cause)})
			r, action = c.newRun(lost.state), lost.next
			continue
		}
		if err != nil {
			if j := c.p.j.journal; j.saved() && context.Cause(ctx) != errSibling && r.askStored(ctx, err) {
				j.change(func(token *session.Token) { token.Parts.List[c.i].Committed = t.pos.committed.Load() })
			}
			return c.failed(ctx, p, err)
		}
		if r.resume != nil {
			c.resumed = c.rng.Len() // an earlier call finished it
		}
		return c.made(ctx, object)
	}
}

// failed returns the error of a part, with the committed bytes of all parts as its
// offset. If the service refused data in an open session, it records that in the
// Token, so that the next call does not send the same data again. If the session of the
// part cannot continue, the next call opens another one, for which a temporary object with
// other bytes must not exist. The other parts stay as they are.
func (c *piece) failed(ctx context.Context, p *composer, err error) error {
	e, ok := err.(*session.Error)
	if !ok {
		return err
	}
	switch j := c.p.j.journal; {
	case j == nil:
	case errors.Is(e, session.ErrUnexpectedData) && p.removeUnfinished(ctx, c) != nil: // the Token still has the session, whose reply describes the object
	case e.Open:
		j.change(func(t *session.Token) { t.Parts.List[c.i].RejectedAt = e.Offset + 1 })
	case dead(e):
		j.change(func(t *session.Token) { t.Parts.List[c.i] = session.Part{} })
	}
	_, _, e.Offset = c.p.position()
	return e
}

// newRun returns a run that sends the part from a session state.
func (c *piece) newRun(s session.State) *run { return &run{transfer: c.transfer, state: s} }

// resume returns a run that continues the session of an earlier call.
func (c *piece) resume(saved session.Part) *run {
	t, size := c.transfer, c.content.Total()
	r := c.newRun(session.State{
		Size: size, Committed: saved.Committed, Sent: saved.HighWater, Restarts: saved.Restarts,
		MayExist: saved.HighWater == size, Adopted: true, Temporary: true,
		Rejected: saved.RejectedAt > 0, RejectedAt: saved.RejectedAt - 1,
	})
	r.uri, r.opened = saved.URI, saved.Created
	c.content.Adopt(source.Saved{Checkpoints: saved.Checkpoints})
	r.resume = func(ctx context.Context, offset int64) error {
		if err := c.content.Seek(ctx, offset); err != nil {
			return t.sourceFailed(ctx, err)
		}
		t.pos.sent.Store(offset)
		c.resumed = offset
		return nil
	}
	return r
}

// made verifies the temporary object and records that the part is finished.
func (c *piece) made(ctx context.Context, object *session.Object) error {
	t := c.transfer
	whole, err := c.content.Whole(ctx)
	if err != nil {
		return t.sourceFailed(ctx, err)
	}
	o, err := verifyObject(object, t.wire.spec, whole.Offset, whole.CRC32C)
	if err == nil && o.Generation == 0 {
		err = errors.New("the temporary object has no generation")
	}
	if err != nil {
		return t.retry.failure(&session.Error{Op: session.OpFinalize, Status: 200, Offset: t.pos.committed.Load(), Kind: session.ErrUnexpectedData}, err)
	}
	c.finished(session.Part{Generation: o.Generation, CRC32C: whole.CRC32C})
	c.note(ctx)
	return nil
}

// note updates the Token after the temporary object was made. It saves the Token if
// the last save is old.
func (c *piece) note(ctx context.Context) {
	j := c.p.j.journal
	if j == nil {
		return
	}
	version := j.change(func(t *session.Token) {
		done := c.done
		done.Restarts = t.Parts.List[c.i].Restarts
		t.Parts.List[c.i] = done
	})
	if j.old(time.Now()) { // without a save, the session reports it to the next call
		_ = j.saveVersion(ctx, version)
	}
}

// cancel cancels the session of an unfinished part. If the session turns out to be finished,
// cancel records its object instead. The error is that of a request that may succeed later.
func (c *piece) cancel(ctx context.Context) error {
	uri := c.uri()
	if c.done.Finished() || uri.IsZero() {
		return nil
	}
	t := c.transfer
	defer t.retry.close()
	a, err := t.askKnown(ctx, func(ctx context.Context) session.Reply { return t.wire.cancel(ctx, uri) })
	if a.Object != nil {
		c.done = session.Part{Generation: a.Object.Generation}
	}
	return err
}

// uri returns the session URI of the part, or zero if it has none.
func (c *piece) uri() session.URI {
	switch j := c.p.j.journal; {
	case j != nil:
		return j.part(c.i).URI
	case c.saved != nil:
		return c.saved.URI
	}
	return c.session
}
