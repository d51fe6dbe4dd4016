package upload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// piece is one part of the file.
type piece struct {
	p        *parallel
	i        int
	rng      chunk.Range
	transfer *transfer
	content  *fileContent
	saved    *session.Part // what an earlier call saved; nil if it did not, or the session was lost

	session session.URI // of the last run of this call; zero if there was none
	object  int64       // generation of the temporary object; 0 until it was made
	crc32c  uint32
	resumed int64 // bytes that earlier calls had committed
}

// prepare makes the transfer of the piece.
func (c *piece) prepare() {
	p := c.p
	j := p.j
	t := &transfer{}
	j.equip(t, p.temporary(c.name()), j.transfer.retry.budget)
	if j.file != nil { // else the parts are not sent
		c.content = j.section(c.rng)
		t.content = c.content
	}
	t.wire.lease = j.transfer.wire.lease
	t.pos.size.Store(c.rng.Len())
	if j.journal != nil {
		t.record = &pieceRecord{piece: c, journal: j.journal}
	}
	c.transfer = t
	switch {
	case c.object != 0:
		t.pos.committed.Store(c.rng.Len())
		t.pos.sent.Store(c.rng.Len())
	case c.saved != nil:
		t.pos.committed.Store(c.saved.Committed)
		t.pos.sent.Store(c.saved.Committed)
	}
}

// forget makes the piece one that was not sent. Its transfer stays the same, which events
// read.
func (c *piece) forget() {
	c.saved, c.object, c.crc32c, c.resumed = nil, 0, 0, 0
	c.content = c.p.j.section(c.rng)
	t := c.transfer
	t.content = c.content
	t.pos.sent.Store(0)
	t.pos.committed.Store(0)
}

// name returns the name of the temporary object.
func (c *piece) name() string { return fmt.Sprintf("%s%04d", c.p.parts.Prefix, c.i) }

// send makes the temporary object of a part.
func (c *piece) send(ctx context.Context) error {
	t := c.transfer
	defer t.retry.close()
	r, action := c.newRun(session.State{Size: c.content.total()}), session.Action{Step: session.Begin}
	if c.saved != nil {
		r, action = c.resume(*c.saved), session.Action{Step: session.Query}
	}
	t.retry.stake(c.content.total())
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
			return c.failed(err)
		}
		if r.resume != nil {
			c.resumed = c.rng.Len() // an earlier call finished it
		}
		return c.made(ctx, object)
	}
}

// failed returns the error with which a part failed, with what is committed of all parts.
// It notes that the service refused data in a session that exists, so that the next call
// does not try the same. A part that lost too many sessions is one that was not sent, and
// the others keep what they have.
func (c *piece) failed(err error) error {
	e, ok := err.(*session.Error)
	if !ok {
		return err
	}
	switch j := c.p.j.journal; {
	case j == nil:
	case e.Open:
		j.change(func(t *session.Token) { t.Parts.List[c.i].RejectedAt = e.Offset + 1 })
	case errors.Is(e, session.ErrSessionLost):
		j.change(func(t *session.Token) { t.Parts.List[c.i] = session.Part{} })
	}
	_, _, e.Offset = c.p.position()
	return e
}

func (c *piece) newRun(s session.State) *run { return &run{transfer: c.transfer, state: s} }

// resume returns a run that continues the session of an earlier call.
func (c *piece) resume(saved session.Part) *run {
	t, size := c.transfer, c.content.total()
	r := c.newRun(session.State{
		Size: size, Committed: saved.Committed, Sent: saved.HighWater, Restarts: saved.Restarts,
		MayExist: saved.HighWater == size, Adopted: true,
		Rejected: saved.RejectedAt > 0, RejectedAt: saved.RejectedAt - 1,
	})
	r.uri, r.opened = saved.URI, saved.Created
	c.content.sum = chunk.NewPrefixCRC(saved.Checkpoint(size))
	r.resume = func(ctx context.Context, offset int64) error {
		if err := c.content.seek(ctx, saved.Checkpoint(offset), offset); err != nil {
			return t.sourceFailed(ctx, err)
		}
		t.pos.sent.Store(offset)
		c.resumed = offset
		return nil
	}
	return r
}

// made verifies the temporary object and notes it.
func (c *piece) made(ctx context.Context, object *session.Object) error {
	t := c.transfer
	crc, err := c.content.whole(ctx)
	if err != nil {
		return t.sourceFailed(ctx, err)
	}
	o, err := verifyObject(*object, t.wire.spec, c.content.total(), crc)
	if err == nil && o.Generation == 0 {
		err = errors.New("the temporary object has no generation")
	}
	if err != nil {
		return t.retry.failure(&session.Error{Op: session.OpFinalize, Status: 200, Offset: t.pos.committed.Load(), Kind: session.ErrUnexpectedData}, err)
	}
	c.object, c.crc32c = o.Generation, crc
	t.pos.committed.Store(o.Size)
	t.pos.sent.Store(o.Size)
	c.note(ctx)
	t.events.progress()
	return nil
}

// note saves that the temporary object was made.
func (c *piece) note(ctx context.Context) {
	j := c.p.j.journal
	if j == nil {
		return
	}
	version := j.change(func(t *session.Token) {
		t.Parts.List[c.i] = session.Part{Generation: c.object, CRC32C: c.crc32c, Restarts: t.Parts.List[c.i].Restarts}
	})
	if j.old(time.Now()) { // a query of the session shows it, too
		_ = j.saveVersion(ctx, version)
	}
}
