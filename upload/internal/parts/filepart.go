package parts

import (
	"gcsup/chunk"
	"gcsup/session/state"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// filePart is a part of a file in this call. Its state is in its record.
type filePart struct {
	*engine.Requester
	i       int // from 0
	rng     chunk.Range
	content *source.File // nil if no bytes are sent, for a stream in memory, and for a compressed file
	body    *source.Part // of these two: the bytes, until they are sent; otherwise nil
	record  *saved.SessionRecord
	resumed int64 // bytes that earlier calls had committed
}

// transfer returns a transfer that sends the part with a slot.
func (p *filePart) transfer(slot *connections.Slot) *engine.Transfer {
	return engine.NewTransfer(p.Requester, p.content, p.record, engine.TransferOptions{Moved: slot.Moved, Risk: slot.Risk})
}

// state returns the state of the part for the saved upload.
func (p *filePart) state() state.Part { return p.record.Part() }

// finished reports whether the service has all of the part.
func (p *filePart) finished() bool { return new(p.state()).Finished() }

// place sets the offset up to which the service has the part.
func (p *filePart) place(n int64) {
	p.Pos.Committed.Store(n)
	p.Pos.Sent.Store(n)
}

// forget resets the part to one that was not sent.
func (p *filePart) forget() {
	p.record.Change(func(s *state.Part) { *s = state.Part{Size: s.Size} })
	p.resumed = 0
	p.place(0)
}

// stored returns how many bytes of a finished part this call sent, or 0 if it is not finished.
func (p *filePart) stored() int64 {
	if !p.finished() {
		return 0
	}
	return p.rng.Len() - p.resumed
}

// drop frees the bytes of a part that is not sent.
func (p *filePart) drop() {
	if p.body != nil {
		p.body.Free()
	}
}

// finish records that the service has all of the part. done is its state for the saved upload.
func (p *filePart) finish(done state.Part) {
	p.record.Change(func(s *state.Part) {
		done.Restarts, done.Size = s.Restarts, s.Size
		*s = done
	})
	p.place(p.rng.Len())
	p.Post(engine.Note{Kind: engine.PartDone})
}
