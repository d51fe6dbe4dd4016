package upload

import (
	"sync/atomic"

	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/source"
)

// progress is how far a job is, for its events, and for [call.do]. They read it while the
// job continues.
type progress struct {
	whole  *engine.Position
	source atomic.Pointer[source.Offsets] // of a source that is compressed; nil for any other
	tally  *engine.Tally                  // nil if no bytes are sent
	parts  atomic.Pointer[partsView]      // nil unless the file is sent in parts
}

// partsView shows how far a file in parts is.
type partsView struct {
	position func() (size, sent, arrived, committed int64) // sums over the parts
	progress func() *PartsProgress
}

// position returns the offsets of the job, or the sums over its parts.
func (p *progress) position() (size, sent, arrived, committed int64) {
	if parts := p.parts.Load(); parts != nil {
		return parts.position()
	}
	return p.whole.Load()
}

// describe sets the numbers that every event carries. It returns how many bytes were handed to
// the network.
func (p *progress) describe(e *Event) int64 {
	e.Size, e.Sent, e.Arrived, e.Committed = p.position()
	if parts := p.parts.Load(); parts != nil {
		e.Parts = parts.progress()
	}
	if offsets := p.source.Load(); offsets != nil {
		e.Source = &SourceOffsets{Size: offsets.Size()}
		e.Source.Sent, e.Source.Committed = offsets.Estimate(e.Sent, e.Committed)
		e.Source.Arrived, _ = offsets.Estimate(e.Arrived, e.Committed)
	}
	if p.tally == nil {
		return 0
	}
	return p.tally.Sent.Load()
}
