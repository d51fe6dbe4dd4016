package upload

import (
	"context"
	"log/slog"
	"sync/atomic"

	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/source"
)

// progress is how far a call is, for its events, and for [call.do]. They read it while the
// call continues.
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

// position returns the offsets of the call, or the sums over its parts.
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

// reporter makes events of the notes of an upload, logs its exchanges, and passes them to the
// hook.
type reporter struct {
	events *events // may be nil
	logger *slog.Logger
	named  func() []slog.Attr // names the upload in the log
}

var _ engine.Notes = (*reporter)(nil)

// noteEvents has the kinds of the events of notes.
var noteEvents = [...]EventKind{
	engine.Started: Started, engine.Restarted: Restarted, engine.PartDone: PartDone, engine.Waiting: Waiting, engine.Warning: Warning,
}

func (r *reporter) Note(n engine.Note) {
	r.events.post(Event{Kind: noteEvents[n.Kind], Part: n.Part, Delay: n.Delay, Retry: n.Retry, Blocked: n.Blocked, Cause: n.Cause, Err: n.Err})
}

func (r *reporter) Flowing()   { r.events.flowing() }
func (r *reporter) Committed() { r.events.committed() }

func (r *reporter) WantsExchange(ctx context.Context) bool {
	return r.events != nil && r.events.hook != nil || r.logger.Enabled(ctx, slog.LevelDebug)
}

func (r *reporter) Exchange(n *engine.Exchange) {
	x := Exchange{
		Part: n.Part, Attempt: n.Attempt, Time: n.Began, Duration: n.Took,
		Offset: n.Offset, Sent: n.Sent, Next: n.Next, ctx: n.Context,
	}
	x.Op, x.Status, x.Err = n.Reply.Op, n.Reply.Status, n.Reply.Err
	var open bool
	if x.Committed, open = n.Reply.Committed, n.Reply.Open(); !open {
		x.Committed = -1
	}
	x.log(r.logger, r.named())
	r.events.exchanged(x)
}
