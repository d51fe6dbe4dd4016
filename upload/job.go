package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

// maxObject is the service's limit: https://cloud.google.com/storage/quotas#objects.
const maxObject = 5 << 40

// job makes one object from one source. It chooses between a single request, a
// new session and a saved one, checks preconditions, verifies the object, and
// decides whether the saved upload is kept.
type job struct {
	u        *Uploader
	spec     Spec // in use
	want     Spec // of a call of File, also if a saved upload with other options is resumed
	transfer *transfer
	events   *events
	tally    tally

	file         *fileContent              // nil for a stream
	identity     string                    // the caller's, of a source that is no file; "" if there is none
	gzip         *gzipContent              // nil unless the file is compressed
	parts        atomic.Pointer[partsView] // nil unless the file is sent in parts
	journal      *journal                  // nil if the upload is not saved
	resumed      *session.Token            // the Token being resumed; nil once the server reported how much it holds
	precondition precondition
	listed       bool        // the job is one of a batch: an object that must not be replaced counts as skipped
	timed        bool        // the batch writes modification times, see SkipSameTime
	failed       func(error) // nil, or called with the error of the upload before its session is cancelled
	waited       bool        // for the lease of another process
	before       int64       // the generation at the destination when that wait began; 0 if there was no object, or unseen

	began time.Time

	mu     sync.Mutex // the caller may stop waiting for the job, see do
	result Result
}

// uploads counts the jobs of this process, see [Event].Upload.
var uploads atomic.Int64

// newJob returns a job for a call with ctx. It fails when b is spent. The caller
// must end it with finish.
func (u *Uploader) newJob(ctx context.Context, spec Spec, b *budget) *job {
	j := &job{u: u, spec: spec, began: time.Now(), result: Result{Spec: spec, Size: -1}}
	t := &transfer{expect: u.expect.once()}
	j.transfer = t
	j.events = newEvents(Event{Upload: uploads.Add(1), ctx: ctx}, &u.opts, j.position, j.partsProgress, &t.pos.source)
	j.events.identify("", spec)
	j.equip(t, spec, b)
	j.precondition.t = t
	if size := u.expect.size; size != nil {
		j.expect(*size)
	}
	return j
}

// equip makes t a transfer of the job to the object of spec. It fails when b is
// spent.
func (j *job) equip(t *transfer, spec Spec, b *budget) {
	u := j.u
	t.sizer, t.record, t.tally, t.events = newRequestSizer(u.opts.ChunkSize, u.opts.CommitEvery), unrecorded{}, &j.tally, j.events
	t.pos.size.Store(-1)
	t.retry = newRetrier(u.opts.Policy, u.opts.Gate, b, j.events)
	t.wire = &exchanger{
		client: u.client, objects: u.opts.Objects, spec: spec,
		do: chain(
			leasing(func() session.Lease { return t.wire.lease }),
			counting(func() { j.tally.requests.Add(1); t.retry.attempted() }),
			reaching(b),
			limiting(u.limiter), // a wait for tokens is the source's, not a stall of the network
			watchingStalls(u.opts.StallTimeout, u.opts.StallRate),
			logging(u.opts.Logger, func() []slog.Attr {
				return []slog.Attr{slog.String("id", j.result.ID), slog.Int64("offset", t.pos.committed.Load())}
			}),
			timing(&u.parts.fastestReply),
			reporting(j.events, func() (int64, int) { return t.pos.committed.Load(), t.retry.attempts }),
		),
	}
}

// position returns the numbers that events carry.
func (j *job) position() (size, sent, committed int64) {
	if parts := j.parts.Load(); parts != nil {
		return parts.position()
	}
	return j.transfer.pos.load()
}

// partsView shows how far a file in parts is.
type partsView struct {
	position func() (size, sent, committed int64) // sums over the parts
	progress func() *PartsProgress
}

// partsProgress returns what events carry of a file in parts; nil of any other.
func (j *job) partsProgress() *PartsProgress {
	if parts := j.parts.Load(); parts != nil {
		return parts.progress()
	}
	return nil
}

// expect sets how many bytes the source must have.
func (j *job) expect(size int64) {
	j.transfer.expect.size = &size
	if !j.spec.Gzip {
		j.transfer.pos.size.Store(size)
		j.transfer.retry.stake(size)
	}
}

// finish delivers the last event and returns the Result of an upload that ended
// with err.
func (j *job) finish(ctx context.Context, err error) (*Result, error) {
	err = j.ended(ctx, err)
	j.transfer.retry.close()
	res, t := j.snapshot(), j.transfer
	if j.file != nil && err == nil {
		res.Source = j.file.identity
	}
	res.Retries, res.Waited = res.Retries+t.retry.retries, res.Waited+t.retry.waiter.Waited() // and those of parts
	res.Resumable = err != nil && j.journal.saved()
	if res.Resumed || err != nil {
		j.u.opts.Logger.LogAttrs(context.Background(), slog.LevelInfo, "upload ended",
			slog.String("id", res.ID), slog.Int64("resumed_from", res.ResumedFrom), slog.Int64("committed", t.pos.committed.Load()), slog.Any("err", err))
	}
	return j.conclusion(ctx, res, err)
}

// conclusion delivers the last event and returns what the call returns.
func (j *job) conclusion(ctx context.Context, res Result, err error) (*Result, error) {
	if e, ok := err.(*InterruptedError); ok && res.Resumable {
		e.Resumable = true // never for a Writer, whose Write may have returned e already
	}
	if j.listed && errors.Is(err, session.ErrPrecondition) && res.Spec.NoClobber {
		res.Skipped, err = SkipExisting, nil
	}
	last := terminal(ctx, res, err)
	j.events.close(ctx, &last)
	return &res, err
}

// snapshot returns the Result as far as it is known. It may be called while the
// job is under way.
func (j *job) snapshot() Result {
	j.mu.Lock()
	defer j.mu.Unlock()
	res := j.result
	res.Size = j.transfer.pos.size.Load()
	if size, ok := j.transfer.pos.source.fileSize(); ok {
		res.Size = size
	}
	res.BytesSent, res.BytesResent, res.BytesReread = j.tally.sent.Load(), j.tally.resent.Load(), j.tally.reread.Load()
	res.Requests, res.Elapsed = int(j.tally.requests.Load()), time.Since(j.began)
	return res
}

// update changes the Result.
func (j *job) update(change func(*Result)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.result)
}

// abandonAfter is how long a cancelled upload is waited for. What it does then
// takes milliseconds, unless a file hangs.
const abandonAfter = 2 * time.Second

// do uploads a file. Once ctx is done it does not wait for reads of the source,
// or for the store: a file server that is away can block them, and nothing can
// interrupt them. The goroutine that hangs holds the lock of the saved upload
// until the file server is back.
func (j *job) do(ctx context.Context, upload func(context.Context) error) (*Result, error) {
	done := make(chan error, 1)
	go func() { done <- upload(ctx) }()
	select {
	case err := <-done:
		return j.finish(ctx, err)
	case <-ctx.Done():
	}
	timer := time.NewTimer(abandonAfter)
	defer timer.Stop()
	select {
	case err := <-done:
		return j.finish(ctx, err)
	case <-timer.C:
	}
	go func() {
		<-done
		j.transfer.retry.close()
	}()
	res := j.snapshot()
	res.Resumable = j.savedUpload().saved()
	return j.conclusion(ctx, res, j.transfer.interrupted(ctx, errors.New("a file or the store does not answer")))
}

// savedUpload returns the journal, or nil.
func (j *job) savedUpload() *journal {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.journal
}

// ended returns err, with which something ended, or the error of an interrupted
// upload if ctx is done: whatever failed after that may have failed because of
// it, and errors that the context's cause brings along are not this upload's.
func (j *job) ended(ctx context.Context, err error) error {
	if lost := j.journal.leaseLost(); lost != nil && err != nil {
		return lost
	}
	if err != nil && ctx.Err() != nil {
		return j.transfer.interrupted(ctx, err)
	}
	return err
}

// identify sets what the upload is called: in its Result, its events and its log.
func (j *job) identify(id string, spec Spec) {
	j.update(func(r *Result) { r.ID, r.Spec = id, spec })
	j.spec = spec
	j.transfer.wire.spec = spec
	j.events.identify(id, spec)
}

// uploadFile uploads a file.
func (j *job) uploadFile(ctx context.Context, path string) error {
	if err := j.validate(); err != nil {
		return err
	}
	if err := j.open(path); err != nil {
		return err
	}
	defer j.closeSource()
	j.detectSource(j.file.src)
	want := j.spec
	if j.u.opts.Store == nil {
		j.identify("", want.Resolved())
		return j.fresh(ctx)
	}
	return j.uploadSavableFile(ctx, path)
}

// uploadListed uploads a file of a batch, unless it is skipped.
func (j *job) uploadListed(ctx context.Context, b *batch, job Job) error {
	if b.opts.Skip == SkipExisting {
		j.spec.IfGenerationMatch, j.spec.NoClobber = new(int64), true
	}
	if err := j.validate(); err != nil {
		return err
	}
	if err := j.open(job.Path); err != nil {
		return err
	}
	defer j.closeSource()
	src := j.file.src
	if b.opts.PreservePOSIX {
		j.spec = withPOSIX(j.spec, src.Info())
	}
	j.detectSource(j.file.src)
	j.timed = b.opts.Skip == SkipSameTime
	if j.timed && !recent(j.file.identity.ModTimeNS) {
		j.spec = withMTime(j.spec, j.file.identity.ModTimeNS)
	}
	want := j.spec
	j.identify("", want.Resolved())
	if skipped, err := j.skip(ctx, b.opts.Skip, job.Listed, job.Object); skipped || err != nil {
		return err
	}
	if b.opts.DryRun {
		return j.plan(ctx)
	}
	if j.small() {
		size := min(src.Size(), b.opts.Memory)
		if err := b.memory.Acquire(ctx, size); err != nil {
			return j.transfer.interrupted(ctx, nil)
		}
		defer b.memory.Release(size)
		if len(b.saved) == 0 {
			return j.fresh(ctx)
		}
	}
	if j.u.opts.Store == nil {
		return j.fresh(ctx)
	}
	j.spec = want
	return j.uploadSavableFile(ctx, job.Path)
}

// plan ends the job of a dry run: it checks the precondition and sends nothing.
func (j *job) plan(ctx context.Context) error {
	if err := j.precondition.check(ctx); err != nil {
		return err
	}
	if err := j.precondition.unmet(); err != nil {
		return err
	}
	j.update(func(r *Result) { r.Planned = true })
	return nil
}

// open opens the source.
func (j *job) open(path string) error {
	j.update(func(r *Result) { r.Path = path })
	j.events.source(path)
	src, err := chunk.Open(path)
	if err != nil {
		return err
	}
	if err := j.use(src); err != nil {
		_ = src.Close()
		return err
	}
	return nil
}

// use makes src the source of the job, and notes what it is before a byte of it is
// read.
func (j *job) use(src *chunk.Source) error {
	name := cmp.Or(j.result.Path, "the source")
	identity, err := src.Identity()
	switch {
	case err != nil:
		return err
	case identity.Size != src.Size():
		return fmt.Errorf("%w: %s is being written to", session.ErrSourceChanged, name)
	case src.Size() > maxObject:
		return fmt.Errorf("%w: %s has %d bytes, an object at most %d (5 TiB)", session.ErrInvalid, name, src.Size(), int64(maxObject))
	}
	if err := j.transfer.expect.sized(src.Size()); err != nil {
		return err
	}
	j.file = &fileContent{src: src, identity: identity, sum: chunk.NewPrefixCRC(chunk.Checkpoint{}), reread: j.reread}
	j.transfer.content = j.file
	j.update(func(r *Result) { r.Source = identity })
	j.transfer.pos.size.Store(src.Size())
	j.transfer.retry.stake(src.Size())
	return nil
}

// closeSource ends what reads the source, and closes it.
func (j *job) closeSource() {
	if j.gzip != nil {
		j.gzip.close()
	}
	_ = j.file.src.Close()
}

// reread notes that bytes of the source were read only for their checksum. The
// step that reaches the end is not reported: another event follows at once.
func (j *job) reread(n, offset, end int64) {
	j.tally.reread.Add(n)
	if offset < end {
		j.events.comparing(offset, end)
	}
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
			j.resumed = nil
			j.transfer.pos.sent.Store(0) // of the new session
			j.events.post(Event{Kind: Restarted, Cause: lost.cause})
			j.transfer.retry.stake(j.transfer.pos.handed)
			if j.gzip != nil {
				j.gzip.restart()
				lost.state.Size = -1
				j.transfer.pos.size.Store(-1)
			}
			c, first = j.newRun(lost.state), lost.next
			continue
		}
		if err == nil {
			err = j.verify(guarded, object)
		}
		if differs, ok := errors.AsType[*copyDiffers](err); ok && j.u.opts.RestartChanged {
			return j.discardCopy(ctx, differs)
		}
		if slow, ok := errors.AsType[*slowConnection](err); ok {
			return j.restartInParts(ctx, c, slow)
		}
		if other, ok := errors.AsType[*otherCompressor](err); ok {
			return j.compressAgain(ctx, c, other)
		}
		err = j.ended(ctx, err)
		if err != nil && j.failed != nil {
			j.failed(err)
		}
		j.dropUseless(ctx, c, err)
		return j.conclude(err)
	}
}

// dropUseless cancels a session that can never be resumed, so that the service need
// not keep its bytes: of a stream that failed, and of a file that does not have the
// expected checksum. A service that does not answer, or does not know the session, is
// not asked.
func (j *job) dropUseless(ctx context.Context, c conversation, err error) {
	r, ok := c.(*run)
	_, unexpected := errors.AsType[*unexpectedBytes](err)
	if err == nil || !ok || j.transfer.content.rereadable() && !unexpected ||
		errors.Is(err, session.ErrRetriesExhausted) || errors.Is(err, session.ErrSessionLost) || errors.Is(err, session.ErrCanceled) {
		return
	}
	j.transfer.drop(ctx, r.uri)
}
