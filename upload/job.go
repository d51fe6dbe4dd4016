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

// newTransfer returns the transfer of src to the destination, when the Spec is known. measure is as in
// [engine.TransferOptions].
func (j *job) newTransfer(src content.Source, r engine.Record, measure func() engine.Measure) *engine.Transfer {
	return engine.NewTransfer(j.requests, j.spec, src, r, engine.TransferOptions{Expect: j.expect, Measure: measure})
}

// uploadOnce uploads src through a session that no other call can resume.
func (j *job) uploadOnce(ctx context.Context, src content.Source) error {
	t := j.newTransfer(src, engine.Unrecorded{}, nil)
	r := engine.NewRun(t, &j.precondition, session.State{Size: src.Total()})
	return j.finishSession(ctx, r, j.makeInSession(ctx, r))
}

// driver makes an object: an [engine.Run] or an [engine.Insertion].
type driver interface {
	Drive(ctx context.Context) (*session.Object, error)
	Verify(ctx context.Context, object *session.Object) (*session.Object, error)
}

// make makes the object with d, and verifies it.
func (j *job) make(ctx context.Context, d driver) error {
	guarded, stop := j.journal.Guard(ctx)
	defer stop()
	object, err := d.Drive(guarded)
	if err != nil {
		return err
	}
	object, unverified := j.wire().Confirm(guarded, object)
	if object, err = d.Verify(guarded, object); err != nil {
		return err
	}
	j.reportUnverified(unverified)
	j.result.update(func(r *Result) { r.Object = object })
	j.events.committed()
	return nil
}

// makeInSession is make with a session, which an earlier process may have finished.
func (j *job) makeInSession(ctx context.Context, r *engine.Run) error {
	err := j.make(ctx, r)
	if err == nil && r.Unqueried() {
		j.result.update(func(r *Result) { r.Resumed, r.ResumedFrom = true, r.Object.Size })
	}
	return err
}

// resumed records that the service reported how much it has of a saved session.
func (j *job) resumed(offset int64) {
	j.result.update(func(r *Result) { r.Resumed, r.ResumedFrom = true, offset })
	j.events.post(Event{Kind: Resumed})
}

// finishSession decides what happens to the saved upload, and to the session of r, which ended with err. r is nil if the
// source was sent in one request.
func (j *job) finishSession(ctx context.Context, r *engine.Run, err error) error {
	err = endedBy(ctx, err, j.journal)
	var uri session.URI
	if r != nil {
		uri = r.URI
		if err != nil && j.journal.Saved() {
			r.AskStored(ctx, engine.Grace)
		}
	}
	j.reportFailure(err)
	e := j.endOf(ofStream, err)
	if j.file != nil {
		e.of = ofFile
	}
	e.outdated = r != nil && r.Unqueried() || errors.Is(err, session.ErrSourceChanged)
	switch what := ending(e); what {
	case cancelSession:
		j.cancelSession(ctx, uri, err)
	case discard, discardAndCancel:
		left := j.journal.Discard()
		if what == discardAndCancel {
			j.cancelSession(ctx, uri, err)
		}
		return j.discarded(err, left)
	case keep:
		if e, ok := errors.AsType[*session.Error](err); ok && e.Open {
			j.journal.File().Rejected(e.Offset)
		}
		_, sent, _, committed := j.requests.Pos.Load()
		j.journal.File().Ended(committed, sent)
	}
	return err
}

// endOf describes the end of the upload with err.
func (j *job) endOf(of medium, err error) end {
	why, interrupted := errors.AsType[*engine.Interruption](err)
	_, unexpected := errors.AsType[*engine.UnexpectedBytes](err)
	return end{
		of: of, made: err == nil, unexpected: unexpected,
		savable: j.journal.Lease() != nil, saved: j.journal.Saved(), lost: j.journal.LeaseLost() != nil,
		canceled: interrupted && errors.Is(why, session.ErrCanceled),
		dead:     factOf(err != nil && !interrupted && saved.Dead(err)),
		refused:  errors.Is(err, session.ErrPrecondition), final: j.spec.NoClobber,
	}
}

// discarded returns the error of an upload that ended with err, after its saved upload was deleted with the error
// derr.
func (j *job) discarded(err, derr error) error {
	switch {
	case derr == nil:
		return err
	case err != nil:
		return errors.Join(err, derr)
	}
	j.events.post(Event{Kind: Warning, Cause: derr.Error(), Err: derr})
	return nil
}

// reportFailure reports the error of the upload, before its session is canceled.
func (j *job) reportFailure(err error) {
	if failed := j.result.failed; err != nil && failed != nil {
		failed(j.callError(err))
	}
}

// reportUnverified records why the CRC32C of the object was not compared, if err is not nil.
func (j *job) reportUnverified(err error) {
	if err == nil {
		return
	}
	j.result.update(func(r *Result) { r.Unverified = err })
	j.events.post(Event{Kind: Warning, Cause: "not verified: " + err.Error(), Err: err})
}

// cancelSession cancels a session that can never be resumed, so that the service need not keep its bytes. A service
// that does not answer, or does not know the session, is not asked. err is that of the upload.
func (j *job) cancelSession(ctx context.Context, uri session.URI, err error) {
	if errors.Is(err, session.ErrRetriesExhausted) || errors.Is(err, session.ErrSessionLost) || errors.Is(err, session.ErrCanceled) {
		return
	}
	j.wire().Drop(ctx, uri)
}
