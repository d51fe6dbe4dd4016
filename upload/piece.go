package upload

import (
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

	session session.URI  // of the last run of this call; zero if there was none
	done    session.Part // what the Token has of a part that is finished; zero until it is
	resumed int64        // bytes that earlier calls had committed
}

// prepare makes the transfer of the piece.
func (c *piece) prepare() {
	p := c.p
	j := p.j
	t := &transfer{}
	j.equip(t, p.joiner.spec(c), j.transfer.retry.budget)
	if j.file != nil { // else the parts are not sent
		c.content = j.section(c.rng)
		t.content = c.content
	}
	t.wire.lease = j.transfer.wire.lease
	t.part, t.retry.part = c.i+1, c.i+1
	t.pos.size.Store(c.rng.Len())
	t.pos.handed = min(max(j.transfer.pos.handed-c.rng.From, 0), c.rng.Len()) // in one request before, see divide
	if j.journal != nil {
		t.record = p.joiner.record(c)
	}
	c.transfer = t
	switch {
	case c.done.Finished():
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
	if c.done.Finished() {
		c.p.done.Add(-1)
	}
	c.saved, c.done, c.resumed = nil, session.Part{}, 0
	c.content = c.p.j.section(c.rng)
	t := c.transfer
	t.content = c.content
	t.pos.sent.Store(0)
	t.pos.committed.Store(0)
}

// stored returns how many bytes of the part this call sent, if it is finished.
func (c *piece) stored() int64 {
	if !c.done.Finished() {
		return 0
	}
	return c.rng.Len() - c.resumed
}

// finished notes that the service has all of the part. done is what the Token has of it.
func (c *piece) finished(done session.Part) {
	t, n := c.transfer, c.rng.Len()
	c.done = done
	t.pos.committed.Store(n)
	t.pos.sent.Store(n)
	c.p.done.Add(1)
	t.events.post(Event{Kind: PartDone, Part: t.part})
}
