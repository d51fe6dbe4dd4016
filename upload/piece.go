package upload

import (
	"gcsup/chunk"
	"gcsup/session"
	"gcsup/upload/internal/source"
)

// piece is a part of the file in this call. A session.Part is its state in the Token.
type piece struct {
	p        *parallel
	i        int // from 0
	rng      chunk.Range
	transfer *transfer
	content  *source.File
	slot     *slot         // nil while the part is not being sent
	saved    *session.Part // the unfinished state that an earlier call saved; nil if there is none, or its session was lost

	session session.URI  // of the last run in this call; zero if there was none
	done    session.Part // the state of the part once it is finished; zero until then
	resumed int64        // bytes that earlier calls had committed
}

// prepare makes the transfer of the piece.
func (c *piece) prepare() {
	p := c.p
	j := p.j
	pos := newPosition(c.rng.Len())
	pos.handed = min(max(j.requests.pos.handed-c.rng.From, 0), c.rng.Len()) // already sent over one connection, see restartInParts
	switch {
	case c.done.Finished():
		pos.committed.Store(c.rng.Len())
		pos.sent.Store(c.rng.Len())
	case c.saved != nil:
		pos.committed.Store(c.saved.Committed)
		pos.sent.Store(c.saved.Committed)
	}
	var content source.Content // nil if the parts are not sent
	if j.file != nil {
		c.content = j.file.Section(c.rng)
		content = c.content
	}
	var kept record = unrecorded{}
	if j.journal != nil {
		kept = p.joiner.record(c)
	}
	c.transfer = newTransfer(newRequester(j.uplink, c.i+1, pos), p.joiner.spec(c), content, kept, transferOptions{moved: c.moved})
}

// moved counts bytes for the slot, while the part has one.
func (c *piece) moved(n int64) {
	if c.slot != nil {
		c.slot.moved.Add(n)
	}
}

// forget resets the piece to the state before it was sent.
func (c *piece) forget() {
	if c.done.Finished() {
		c.p.done.Add(-1)
	}
	c.saved, c.done, c.resumed = nil, session.Part{}, 0
	c.content.Restart()
	t := c.transfer
	t.pos.sent.Store(0)
	t.pos.committed.Store(0)
}

// stored returns how many bytes of a finished part this call sent, or 0 if it is not finished.
func (c *piece) stored() int64 {
	if !c.done.Finished() {
		return 0
	}
	return c.rng.Len() - c.resumed
}

// finished records that the service has all of the part. done is its state for the Token.
func (c *piece) finished(done session.Part) {
	t, n := c.transfer, c.rng.Len()
	c.done = done
	t.pos.committed.Store(n)
	t.pos.sent.Store(n)
	c.p.done.Add(1)
	t.events.post(Event{Kind: PartDone})
}
