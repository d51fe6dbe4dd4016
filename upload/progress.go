package upload

import "sync/atomic"

// progress is how far a job is, for its events. The goroutine of the events reads it
// while the job continues.
type progress struct {
	whole *position
	parts atomic.Pointer[partsView] // nil unless the file is sent in parts
}

// partsView shows how far a file in parts is.
type partsView struct {
	position func() (size, sent, committed int64) // sums over the parts
	progress func() *PartsProgress
}

// describe sets the numbers that every event carries.
func (p *progress) describe(e *Event) {
	if parts := p.parts.Load(); parts != nil {
		e.Size, e.Sent, e.Committed = parts.position()
		e.Parts = parts.progress()
	} else {
		e.Size, e.Sent, e.Committed = p.whole.load()
	}
	e.Source = p.whole.source.of(e.Sent, e.Committed)
}
