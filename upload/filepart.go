package upload

import (
	"gcsup/chunk"
	"gcsup/session/state"
	"gcsup/upload/internal/parts"
	"gcsup/upload/internal/source"
)

// filePart is a part of a file in this call. Its state is in its record.
type filePart struct {
	i        int // from 0
	rng      chunk.Range
	content  *source.File // nil if no bytes are sent
	transfer *transfer
	record   *sessionRecord
	slot     *parts.Slot // nil while the part is not being sent
	resumed  int64       // bytes that earlier calls had committed
}

// newPart returns part i of a file whose state is in journal. spec is for its requests.
func (j *job) newPart(journal *journal, i int, rng chunk.Range, spec Spec) *filePart {
	p := &filePart{i: i, rng: rng, record: &sessionRecord{journal: journal, i: i, part: true}}
	var content source.Content // nil if no bytes are sent
	if j.file != nil {
		p.content = j.file.Section(rng)
		p.record.file, p.record.content, content = p.content, p.content, p.content
	}
	pos := newPosition(rng.Len())
	pos.handed = min(max(j.requests.pos.handed-rng.From, 0), rng.Len()) // already sent over one connection, see restartInParts
	p.transfer = newTransfer(newRequester(j.uplink, i+1, pos), spec, content, p.record, transferOptions{moved: p.moved})
	n := p.state().Committed
	if p.finished() {
		n = rng.Len()
	}
	p.place(n)
	return p
}

// moved counts bytes for the slot, while the part has one.
func (p *filePart) moved(n int64) {
	if p.slot != nil {
		p.slot.Moved(n)
	}
}

// state returns the state of the part for the Token.
func (p *filePart) state() state.Part { return p.record.state() }

// finished reports whether the service has all of the part.
func (p *filePart) finished() bool { return new(p.state()).Finished() }

// place sets the offset up to which the service has the part.
func (p *filePart) place(n int64) {
	p.transfer.pos.committed.Store(n)
	p.transfer.pos.sent.Store(n)
}

// forget resets the part to one that was not sent.
func (p *filePart) forget() {
	p.record.change(func(s *state.Part) { *s = state.Part{} })
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

// finish records that the service has all of the part. done is its state for the Token.
func (p *filePart) finish(done state.Part) {
	p.record.change(func(s *state.Part) {
		done.Restarts = s.Restarts
		*s = done
	})
	p.place(p.rng.Len())
	p.transfer.events.post(Event{Kind: PartDone})
}
