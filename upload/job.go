package upload

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"gcsup/session"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
)

// job makes one object from one source. It chooses between a single request, a
// new session and a saved one, checks preconditions, verifies the object, and
// decides whether the saved upload is kept.
type job struct {
	u        *Uploader
	spec     Spec // in use
	want     Spec // of the call, also if a saved upload with other options is resumed
	expect   expectation
	uplink   *uplink
	requests *requester
	events   *events
	progress progress
	result   jobResult

	file         *source.File     // nil for a stream
	source       source.Resumable // what is sent of the file: its bytes, or the compressed ones; nil for a stream
	journal      *saved.Journal
	precondition precondition
	seen         *int64 // generation at the destination when it was compared, 0 if there was no object; nil if it was not read
	wait         holderWait
	rule         Skip                    // of the batch or the call
	batch        bool                    // the job is one of a batch
	interrupt    context.CancelCauseFunc // ends the context of the job; nil if the upload cannot be saved
	measure      *measurement            // of the next transfer; may be nil
}

// uploads counts the jobs of this process, see [Event].Upload.
var uploads atomic.Int64

// newJob returns a job for a call with ctx. It fails when b is spent. The caller
// must end it with finish.
func (u *Uploader) newJob(ctx context.Context, spec Spec, b *budget) *job {
	j := &job{u: u, spec: spec, expect: u.expect.once(), rule: u.rule, journal: &saved.Journal{}, result: jobResult{began: time.Now()}}
	j.result.saved.Store(j.journal)
	j.result.label.names = names{upload: uploads.Add(1), spec: spec}
	j.progress.whole, j.progress.tally = newPosition(-1), &j.result.tally
	j.events = newEvents(ctx, &j.result.label, u.opts.Observer, u.opts.Exchange, j.progress.describe)
	j.uplink = u.newUplink(b, &j.result.tally, &reporter{j.events, u.opts.Logger, func() []slog.Attr {
		n := j.result.label.get()
		return []slog.Attr{slog.String("id", n.id), slog.String("object", n.spec.Object)}
	}})
	j.uplink.replied = u.link.Replied
	j.requests = newRequester(j.uplink, 0, j.progress.whole)
	if size := u.expect.size; size != nil {
		j.expectSize(*size)
	}
	return j
}

// wire returns an exchanger for the object at the destination.
func (j *job) wire() *exchanger { return j.requests.to(j.spec) }

// expectSize sets how many bytes the source must have.
func (j *job) expectSize(size int64) {
	j.expect.size = &size
	if !j.spec.Gzip {
		j.requests.pos.size.Store(size)
		j.requests.retry.stake(size)
	}
}

// identify sets the ID of the upload, and the options of the object.
func (j *job) identify(id string, spec Spec) {
	j.result.label.set(func(n *names) { n.id = id })
	j.setSpec(spec)
}

// newTransfer returns the transfer of src to the destination, when the Spec is known.
func (j *job) newTransfer(src content.Source, r record) *transfer {
	o := transferOptions{expect: j.expect, measure: j.measure}
	j.measure = nil // it is only for the next transfer
	return newTransfer(j.requests, j.spec, src, r, o)
}

// uploadNew uploads src through a new session. r keeps the state of the session.
func (j *job) uploadNew(ctx context.Context, src content.Source, r record) error {
	t := j.newTransfer(src, r)
	return j.upload(ctx, t, newRun(t, &j.precondition, session.State{Size: src.Total()}), session.Action{Step: session.Begin})
}

// upload makes the object with c, a conversation of t. It makes a new session for each one
// that is lost, and verifies the object. The error is a *startOver if the bytes that were sent
// cannot be used.
func (j *job) upload(ctx context.Context, t *transfer, c conversation, first session.Action) error {
	guarded, stop := j.journal.Guard(ctx)
	defer stop()
	object, err := t.drive(guarded, c, first)
	lost, again := errors.AsType[*sessionLost](err)
	for ; again; lost, again = errors.AsType[*sessionLost](err) {
		t.pos.sent.Store(0) // of the new session
		j.events.post(Event{Kind: Restarted, Cause: lost.cause})
		t.retry.stake(t.pos.handed)
		if j.source != nil {
			j.source.Restart()
			lost.state.Size = j.source.Total()
			t.pos.size.Store(lost.state.Size)
		}
		c = newRun(t, &j.precondition, lost.state)
		object, err = t.drive(guarded, c, lost.next)
	}
	var uri session.URI
	var unqueried bool
	r, _ := c.(*run)
	if r != nil {
		uri, unqueried = r.uri, r.unqueried()
	}
	if err == nil {
		object, err = t.verify(guarded, object)
	}
	if err == nil {
		j.result.update(func(r *Result) {
			r.Object = object
			if unqueried {
				r.Resumed, r.ResumedFrom = true, object.Size // the earlier process finished it
			}
		})
		j.events.committed()
	}
	err = j.overBecause(err, uri)
	if _, over := err.(*startOver); over {
		return err
	}
	err = endedBy(ctx, err, j.journal)
	if err != nil && r != nil && j.journal.Saved() {
		r.askStored(ctx, abandonGrace)
	}
	if failed := j.result.failed; err != nil && failed != nil {
		failed(j.callError(err))
	}
	j.dropUseless(ctx, uri, err)
	return j.keepSaved(err, unqueried)
}

// dropUseless cancels a session that can never be resumed, so that the service need
// not keep its bytes: of a stream that failed, and of a file that does not have the
// expected checksum. A service that does not answer, or does not know the session, is
// not asked.
func (j *job) dropUseless(ctx context.Context, uri session.URI, err error) {
	_, unexpected := errors.AsType[*unexpectedBytes](err)
	if err == nil || j.file != nil && !unexpected ||
		errors.Is(err, session.ErrRetriesExhausted) || errors.Is(err, session.ErrSessionLost) || errors.Is(err, session.ErrCanceled) {
		return
	}
	j.wire().drop(ctx, uri)
}
