package upload

import (
	"context"
	"log/slog"
)

// reporter makes events of the notes of an upload, logs its exchanges, and passes them to the
// hook.
type reporter struct {
	events *events // may be nil
	logger *slog.Logger
	named  func() []slog.Attr // names the upload in the log
}

var _ notes = (*reporter)(nil)

// noteEvents has the kinds of the events of notes.
var noteEvents = [...]EventKind{
	noteStarted: Started, noteResumed: Resumed, noteRestarted: Restarted, notePartDone: PartDone, noteWaiting: Waiting, noteWarning: Warning,
}

func (r *reporter) note(n note) {
	r.events.post(Event{Kind: noteEvents[n.kind], Part: n.part, Delay: n.delay, Retry: n.retry, Held: n.held, Cause: n.cause, Err: n.err})
}

func (r *reporter) flowing()   { r.events.flowing() }
func (r *reporter) committed() { r.events.committed() }

func (r *reporter) hooked() bool { return r.events != nil && r.events.hook != nil }

func (r *reporter) logged(ctx context.Context) bool { return r.logger.Enabled(ctx, slog.LevelDebug) }

func (r *reporter) wantsExchange(ctx context.Context) bool { return r.hooked() || r.logged(ctx) }

func (r *reporter) exchange(n *exchangeNote) {
	x := Exchange{
		Part: n.part, Attempt: n.attempt, Time: n.began, Duration: n.took,
		Offset: n.offset, Sent: n.sent, Next: n.next, ctx: n.ctx,
	}
	x.Op, x.Status, x.Err = n.reply.Op, n.reply.Status, n.reply.Err
	var open bool
	if x.Committed, open = n.reply.Held(); !open {
		x.Committed = -1
	}
	if r.logged(n.ctx) {
		x.log(r.logger, r.named())
	}
	if r.hooked() {
		r.events.exchanged(x)
	}
}
