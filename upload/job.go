package upload

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"gcsup/session"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/engine"
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
	expect   engine.Expectation
	uplink   *engine.Uplink
	requests *engine.Requester
	events   *events
	progress progress
	result   jobResult

	file         *source.File     // nil for a stream
	source       source.Resumable // what is sent of the file: its bytes, or the compressed ones; nil for a stream
	journal      *saved.Journal
	precondition engine.Precondition
	seen         *int64          // generation at the destination when it was compared, 0 if there was no object; nil if it was not read
	found        *session.Object // at the destination when it was compared
	refused      error           // the refusal of the request for that object
	wait         holderWait
	rule         Skip                    // of the batch or the call
	listed       bool                    // the caller looked up the destination
	batch        bool                    // the job is one of a batch
	interrupt    context.CancelCauseFunc // ends the context of the job; nil if the upload cannot be saved
	measure      func() engine.Measure   // of the next transfer; may be nil

	// turn waits for the turn of the job in a batch. It is nil if the job need not wait.
	turn func(context.Context, Spec) error

	// skipAgain looks at the destination and applies the rule again. It is nil if there is no rule.
	skipAgain func(context.Context) (bool, error)
}

// uploads counts the jobs of this process, see [Event].Upload.
var uploads atomic.Int64

// newJob returns a job for a call with ctx. It fails when b is spent. The caller
// must end it with finish.
func (u *Uploader) newJob(ctx context.Context, spec Spec, b *engine.Budget) *job {
	j := &job{u: u, spec: spec, expect: u.expect.Once(), rule: u.rule, journal: &saved.Journal{}, result: jobResult{began: time.Now()}}
	j.result.saved.Store(j.journal)
	j.result.label.names = names{upload: uploads.Add(1), spec: spec}
	j.progress.whole, j.progress.tally = engine.NewPosition(-1), &j.result.tally
	j.events = newEvents(ctx, u, &j.result.label, j.progress.describe)
	j.uplink = u.newUplink(b, &j.result.tally, &reporter{j.events, u.opts.Logger, func() []slog.Attr {
		n := j.result.label.get()
		attrs := []slog.Attr{slog.String("id", n.id)}
		if n.path != "" {
			attrs = append(attrs, slog.String("source", n.path))
		}
		return append(attrs, slog.String("object", n.spec.Object))
	}})
	j.uplink.Replied = u.link.Replied
	j.requests = engine.NewRequester(j.uplink, 0, j.progress.whole)
	if size := u.expect.Size; size != nil {
		j.expectSize(*size)
	}
	return j
}

// awaitTurn waits, before the first request, until the batch may upload another file.
func (j *job) awaitTurn(ctx context.Context) error {
	if j.turn == nil {
		return nil
	}
	return j.turn(ctx, j.spec)
}

// wire returns an exchanger for the object at the destination.
func (j *job) wire() *engine.Exchanger { return j.requests.To(j.spec) }

// expectSize sets how many bytes the source must have.
func (j *job) expectSize(size int64) {
	j.expect.Size = &size
	if !j.spec.Gzip {
		j.requests.Pos.Size.Store(size)
		j.requests.Retry.Stake(size)
	}
}

// identify sets the ID of the upload, and the options of the object.
func (j *job) identify(id string, spec Spec) {
	j.result.label.set(func(n *names) { n.id = id })
	j.setSpec(spec)
}

// newTransfer returns the transfer of src to the destination, when the Spec is known.
func (j *job) newTransfer(src content.Source, r engine.Record) *engine.Transfer {
	o := engine.TransferOptions{Expect: j.expect, Measure: j.measure}
	j.measure = nil // it is only for the next transfer
	return engine.NewTransfer(j.requests, j.spec, src, r, o)
}

// uploadNew uploads src through a new session. r keeps the state of the session.
func (j *job) uploadNew(ctx context.Context, src content.Source, r engine.Record) error {
	t := j.newTransfer(src, r)
	return j.upload(ctx, engine.NewRun(t, &j.precondition, session.State{Size: src.Total()}))
}

// driver makes an object: an [engine.Run] or an [engine.Insertion].
type driver interface {
	Drive(ctx context.Context) (*session.Object, error)
	Verify(ctx context.Context, object *session.Object) (*session.Object, error)
}

// upload makes the object with d, and verifies it. The error is a *startOver if the bytes that
// were sent cannot be used.
func (j *job) upload(ctx context.Context, d driver) error {
	uri, unqueried, err := j.make(ctx, d)
	if slow, ok := errors.AsType[*slowConnection](err); ok {
		// The session is discarded only if the file can be sent in parts.
		send, refused := slow.divide(ctx)
		if send != nil {
			return &startOver{slow.Error(), uri, send}
		}
		if err = refused; err == nil {
			d.(*engine.Run).Unmeasured()
			uri, unqueried, err = j.make(ctx, d)
		}
	}
	err = j.overBecause(err, uri)
	if _, over := err.(*startOver); over {
		return err
	}
	err = endedBy(ctx, err, j.journal)
	if r, ok := d.(*engine.Run); ok && err != nil && j.journal.Saved() {
		r.AskStored(ctx, engine.Grace)
	}
	if failed := j.result.failed; err != nil && failed != nil {
		failed(j.callError(err))
	}
	j.dropUseless(ctx, uri, err)
	return j.keepSaved(err, unqueried)
}

// make makes the object with d, and verifies it. unqueried is as in [job.keepSaved].
func (j *job) make(ctx context.Context, d driver) (uri session.URI, unqueried bool, err error) {
	guarded, stop := j.journal.Guard(ctx)
	defer stop()
	object, err := d.Drive(guarded)
	r, _ := d.(*engine.Run)
	if r != nil {
		uri, unqueried = r.URI, r.Unqueried()
	}
	var unverified error
	if err == nil {
		object, unverified = j.wire().Confirm(guarded, object)
		object, err = d.Verify(guarded, object)
	}
	if err == nil {
		j.reportUnverified(unverified)
		j.result.update(func(r *Result) {
			r.Object = object
			if unqueried {
				r.Resumed, r.ResumedFrom = true, object.Size // the earlier process finished it
			}
		})
		j.events.committed()
	}
	return uri, unqueried, err
}

// reportUnverified records why the CRC32C of the object was not compared, if err is not nil.
func (j *job) reportUnverified(err error) {
	if err == nil {
		return
	}
	j.result.update(func(r *Result) { r.Unverified = err })
	j.events.post(Event{Kind: Warning, Cause: "not verified: " + err.Error(), Err: err})
}

// dropUseless cancels a session that can never be resumed, so that the service need
// not keep its bytes: of a stream that failed, and of a file that does not have the
// expected checksum. A service that does not answer, or does not know the session, is
// not asked.
func (j *job) dropUseless(ctx context.Context, uri session.URI, err error) {
	_, unexpected := errors.AsType[*engine.UnexpectedBytes](err)
	if err == nil || j.file != nil && !unexpected ||
		errors.Is(err, session.ErrRetriesExhausted) || errors.Is(err, session.ErrSessionLost) || errors.Is(err, session.ErrCanceled) {
		return
	}
	j.wire().Drop(ctx, uri)
}
