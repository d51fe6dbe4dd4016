package upload

import (
	"context"
	"log/slog"

	"gcsup/upload/internal/engine"
)

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
	r.events.post(Event{Kind: noteEvents[n.Kind], Part: n.Part, Delay: n.Delay, Retry: n.Retry, Held: n.Held, Cause: n.Cause, Err: n.Err})
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
	if x.Committed, open = n.Reply.Held(); !open {
		x.Committed = -1
	}
	x.log(r.logger, r.named())
	r.events.exchanged(x)
}
