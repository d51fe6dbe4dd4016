package parts

import (
	"context"
	"errors"

	"gcsup/internal/grace"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// send uploads the temporary object of a part through a session.
func (c *composer) send(ctx context.Context, p *filePart, slot *connections.Slot) error {
	t := p.transfer(slot)
	defer t.Wire.Retry.Close()
	r := engine.NewRun(t, nil, session.State{Size: p.rng.Len(), Temporary: true})
	if part := p.state(); !part.URI.IsZero() {
		r = p.resume(t, part)
	}
	t.Wire.Retry.Stake(p.rng.Len())
	object, err := r.Drive(ctx)
	if err != nil {
		if c.file.Journal.Saved() && context.Cause(ctx) != errSibling && r.AskStored(ctx, grace.Requests) {
			p.record.Change(func(s *state.Part) { s.Committed = t.Wire.Pos.Committed.Load() })
		}
		return c.failed(ctx, p, err)
	}
	if r.Unqueried() {
		p.resumed = p.rng.Len() // an earlier call finished it
	}
	return c.partMade(ctx, p, t, object)
}

// failed returns the error of a part, with the committed bytes of all parts as its
// offset. If the service refused data in an open session, it records that in the
// saved upload, so that the next call does not send the same data again. If the session of the
// part cannot continue, the next call opens another one, for which a temporary object with
// other bytes must not exist. The other parts stay as they are.
func (c *composer) failed(ctx context.Context, p *filePart, err error) error {
	e, ok := err.(*session.Error)
	if !ok {
		return err
	}
	keeps := c.file.Journal.Lease() != nil
	var left leftovers
	if keeps && errors.Is(e, session.ErrUnexpectedData) {
		c.remove(ctx, p, true, &left)
	}
	switch {
	case !keeps, left.n > 0: // the saved upload still has the session, whose reply describes the object
	case e.Open:
		p.record.Rejected(e.Offset)
	case saved.Dead(e):
		p.record.Change(func(s *state.Part) { *s = state.Part{} })
	}
	_, _, _, e.Offset = c.file.Position()
	return e
}

// resume returns a run of t that continues the session of an earlier call.
func (p *filePart) resume(t *engine.Transfer, part state.Part) *engine.Run {
	state := saved.Adopted(part.Session, p.rng.Len())
	state.Temporary = true
	p.content.Adopt(source.Saved{Checkpoints: part.Checkpoints})
	return engine.ResumedRun(t, nil, state, engine.Resumption{
		URI: part.URI, Opened: part.Created, Seek: p.content.Seek, Resumed: func(offset int64) { p.resumed = offset },
	})
}

// partMade verifies the temporary object of a part and records that the part is finished. It saves
// the saved upload if the last save is old.
func (c *composer) partMade(ctx context.Context, p *filePart, t *engine.Transfer, object *session.Object) error {
	o, err := t.Verify(ctx, object)
	if err != nil {
		return err
	}
	if o.Generation == 0 {
		return t.Wire.Retry.Failure(&session.Error{Op: session.OpFinalize, Status: 200, Offset: o.Size, Kind: session.ErrUnexpectedData}, errors.New("the temporary object has no generation"))
	}
	whole, err := p.content.Whole(ctx)
	if err != nil {
		return engine.SourceFailed(ctx, err)
	}
	p.finish(state.Part{Generation: o.Generation, CRC32C: whole.CRC32C})
	p.content.Committed(p.rng.Len())
	if c.file.Journal.Old() { // without a save, the session reports it to the next call
		_ = c.file.Journal.Save(ctx)
	}
	return nil
}
