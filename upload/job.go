package upload

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"gcsup/session"
	"gcsup/upload/internal/source"
)

// job makes one object from one source. It chooses between a single request, a
// new session and a saved one, checks preconditions, verifies the object, and
// decides whether the saved upload is kept.
type job struct {
	u        *Uploader
	spec     Spec // in use
	want     Spec // of a call of File, also if a saved upload with other options is resumed
	transfer *transfer
	events   *events
	progress progress
	result   jobResult

	file         *source.File     // nil for a stream
	source       source.Resumable // what is sent of the file: its bytes, or the compressed ones; nil for a stream
	journal      *journal         // nil if the upload is not saved
	precondition precondition
	seen         *int64 // generation at the destination when it was compared, 0 if there was no object; nil if it was not read
	wait         holderWait
	batch        *BatchOptions           // nil unless the job is one of a batch, or of a call with a rule
	interrupt    context.CancelCauseFunc // ends the context of the job; nil if the upload cannot be saved
	rate         *rateShare              // nil if there is no limit
}

// uploads counts the jobs of this process, see [Event].Upload.
var uploads atomic.Int64

// newJob returns a job for a call with ctx. It fails when b is spent. The caller
// must end it with finish.
func (u *Uploader) newJob(ctx context.Context, spec Spec, b *budget) *job {
	j := &job{u: u, spec: spec, rate: u.opts.RateLimit.share(), result: jobResult{began: time.Now(), known: Result{Spec: spec, Size: -1}}}
	t := &transfer{expect: u.expect.once()}
	j.transfer, j.progress.whole, j.progress.tally = t, &t.pos, &j.result.tally
	j.events = newEvents(Event{Upload: uploads.Add(1), ctx: ctx}, &u.opts, &j.progress)
	j.events.identify("", spec)
	j.equip(t, spec, b)
	j.precondition.t = t
	if u.skip != nil {
		j.batch = &u.skip.opts
	}
	if size := u.expect.size; size != nil {
		j.expect(*size)
	}
	return j
}

// equip makes t a transfer of the job to the object of spec. It fails when b is
// spent.
func (j *job) equip(t *transfer, spec Spec, b *budget) {
	u := j.u
	t.sizer, t.record, t.tally, t.events = newRequestSizer(u.opts.ChunkSize, u.opts.CommitEvery), unrecorded{}, &j.result.tally, j.events
	t.pos.size.Store(-1)
	t.retry = newRetrier(u.opts.Policy, u.opts.Gate, b, j.events)
	t.wire = &exchanger{
		client: u.client, objects: u.opts.Objects, spec: spec,
		do: chain(
			leasing(func() session.Lease { return t.wire.lease }),
			noting(func(r session.Reply) {
				j.result.tally.requests.Add(1)
				t.retry.attempts++
				t.wire.aim.learn(r)
				if r.Reused && r.Lost() {
					t.wire.stale.Store(true)
				}
			}),
			reaching(b),
			limiting(j.rate), // the stall watch counts a wait for the limit as time of the source
			watchingStalls(u.opts.StallTimeout, u.opts.StallRate),
			timing(&u.parts.fastestReply),
			reporting(u.opts.Logger, func() []slog.Attr {
				return []slog.Attr{slog.String("id", j.result.known.ID), slog.String("object", j.spec.Object)}
			}, j.events, func(x *Exchange) { x.Offset, x.Attempt, x.Part = t.pos.committed.Load(), t.retry.attempts+1, t.part }),
		),
	}
}

// expect sets how many bytes the source must have.
func (j *job) expect(size int64) {
	j.transfer.expect.size = &size
	if !j.spec.Gzip {
		j.transfer.pos.size.Store(size)
		j.transfer.retry.stake(size)
	}
}

// identify sets what the upload is called: in its Result, its events and its log.
func (j *job) identify(id string, spec Spec) {
	j.result.update(func(r *Result) { r.ID, r.Spec = id, spec })
	j.spec = spec
	j.transfer.wire.spec = spec
	j.events.identify(id, spec)
}

// newRun returns a run for the next session.
func (j *job) newRun(s session.State) *run {
	return &run{transfer: j.transfer, precondition: &j.precondition, state: s}
}

// upload makes the object, with a new session for each one that is lost, and
// verifies it.
func (j *job) upload(ctx context.Context, c conversation, first session.Action) error {
	guarded, stop := j.journal.guard(ctx)
	defer stop()
	for {
		object, err := j.transfer.drive(guarded, c, first)
		if lost, ok := errors.AsType[*sessionLost](err); ok {
			j.transfer.pos.sent.Store(0) // of the new session
			j.events.post(Event{Kind: Restarted, Cause: lost.cause})
			j.transfer.retry.stake(j.transfer.pos.handed)
			if j.source != nil {
				j.source.Restart()
				lost.state.Size = j.source.Total()
				j.transfer.pos.size.Store(lost.state.Size)
			}
			c, first = j.newRun(lost.state), lost.next
			continue
		}
		if err == nil {
			err = j.verify(guarded, object, unqueried(c))
		}
		if differs, ok := errors.AsType[*source.CopyDiffers](err); ok && j.u.opts.RestartChanged {
			return j.discardCopy(ctx, differs)
		}
		if slow, ok := errors.AsType[*slowConnection](err); ok {
			return j.restartInParts(ctx, c, slow)
		}
		if other, ok := errors.AsType[*source.OtherCompressor](err); ok {
			return j.compressAgain(ctx, c, other)
		}
		err = j.ended(ctx, err)
		if r, ok := c.(*run); ok && j.journal.saved() && r.askStored(ctx, err) {
			e, _ := errors.AsType[*InterruptedError](err)
			e.Committed = j.transfer.pos.committed.Load()
		}
		if failed := j.result.failed; err != nil && failed != nil {
			failed(err)
		}
		j.dropUseless(ctx, c, err)
		return j.conclude(err, unqueried(c))
	}
}

// dropUseless cancels a session that can never be resumed, so that the service need
// not keep its bytes: of a stream that failed, and of a file that does not have the
// expected checksum. A service that does not answer, or does not know the session, is
// not asked.
func (j *job) dropUseless(ctx context.Context, c conversation, err error) {
	r, ok := c.(*run)
	_, unexpected := errors.AsType[*unexpectedBytes](err)
	if err == nil || !ok || j.file != nil && !unexpected ||
		errors.Is(err, session.ErrRetriesExhausted) || errors.Is(err, session.ErrSessionLost) || errors.Is(err, session.ErrCanceled) {
		return
	}
	j.transfer.drop(ctx, r.uri)
}
