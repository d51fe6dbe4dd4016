package upload

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
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

	file         *fileContent   // nil for a stream
	identity     string         // the caller's, of a source that is no file; "" if there is none
	gzip         *gzipContent   // nil unless the file is compressed
	journal      *journal       // nil if the upload is not saved
	resumed      *session.Token // the Token being resumed; nil once the server reported how much it holds
	precondition precondition
	listed       bool        // the job is one of a batch: an object that must not be replaced counts as skipped
	timed        bool        // the batch writes modification times, see SkipSameTime
	failed       func(error) // nil, or called with the error of the upload before its session is cancelled

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
	t := &transfer{sizer: newRequestSizer(u.opts.ChunkSize, u.opts.CommitEvery), record: unrecorded{}, tally: &j.tally, expect: u.expect.once()}
	t.pos.size.Store(-1)
	j.transfer = t
	j.events = newEvents(Event{Upload: uploads.Add(1), ctx: ctx}, &u.opts, t.pos.load, &t.pos.source)
	j.events.identify("", spec)
	t.events = j.events
	t.retry = newRetrier(u.opts.Policy, u.opts.Gate, b, j.events)
	t.wire = &exchanger{
		client: u.client, objects: u.opts.Objects, spec: spec,
		do: chain(
			counting(func() { j.tally.requests.Add(1); t.retry.attempted() }),
			reaching(b),
			limiting(u.limiter), // a wait for tokens is the source's, not a stall of the network
			watchingStalls(u.opts.StallTimeout, u.opts.StallRate),
			logging(u.opts.Logger, func() []slog.Attr {
				return []slog.Attr{slog.String("id", j.result.ID), slog.Int64("offset", t.pos.committed.Load())}
			}),
			reporting(j.events, func() (int64, int) { return t.pos.committed.Load(), t.retry.attempts }),
		),
	}
	j.precondition.t = t
	if size := u.expect.size; size != nil {
		j.expect(*size)
	}
	return j
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
	res.Retries, res.Waited = t.retry.retries, t.retry.waiter.Waited()
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
	if lost := j.journal.lockLost(); lost != nil && err != nil {
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

// uploadSavableFile is uploadSavable for the file at path.
func (j *job) uploadSavableFile(ctx context.Context, path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	id, err := j.u.ID(path, j.spec)
	if err != nil {
		return err
	}
	return j.uploadSavable(ctx, id, abs)
}

// uploadSavable uploads the open source, with its saved session if there is one.
// path is absolute, or "" for a source with an identity of the caller's.
func (j *job) uploadSavable(ctx context.Context, id, path string) error {
	store, want := j.u.opts.Store, j.spec
	j.want = want.Resolved()
	j.identify(id, j.want)
	if j.small() && !savedIn(ctx, store, id) {
		return j.fresh(ctx)
	}
	journal, token, damaged, err := openJournal(ctx, store, id)
	if err != nil {
		return err
	}
	defer journal.close()
	j.keep(journal, token, path)
	switch {
	case token != nil && j.u.opts.Restart:
		if j.u.client.Adopt(token) == nil {
			j.transfer.drop(ctx, token.URI)
		}
		return j.startOver(ctx, "discarded, as requested")
	case token != nil:
		if j.timed {
			want = sameMTime(want, token.Spec)
		}
		if conflict := token.Spec.Conflict(want); conflict != "" {
			return fmt.Errorf("%w: %s", session.ErrOptionsDiffer, conflict)
		}
		if j.want.EncryptionKey.IsZero() {
			// If the upload starts over, the object is still encrypted.
			j.want.EncryptionKey = token.Spec.EncryptionKey
		}
		return j.resume(ctx, token)
	case damaged != nil:
		j.events.post(Event{Kind: Discarded, Cause: damaged.Error()})
	}
	return j.fresh(ctx)
}

// savedIn reports whether a store has an upload of that ID, or had one that is
// damaged. A store that cannot be read has none.
func savedIn(ctx context.Context, store session.Store, id string) bool {
	_, err := store.Load(ctx, id)
	return err == nil || errors.Is(err, session.ErrCorruptToken) || errors.Is(err, session.ErrTokenVersion)
}

// setSpec sets the options of the object, for this upload and for what is saved.
func (j *job) setSpec(spec Spec) {
	j.identify(j.result.ID, spec)
	if j.journal != nil {
		j.journal.draft.Spec = withoutSecret(spec)
	}
}

// uploadSaved resumes a saved upload.
func (j *job) uploadSaved(ctx context.Context, id string) error {
	store := j.u.opts.Store
	if j.u.invalid != nil {
		return j.u.invalid
	}
	if store == nil {
		return fmt.Errorf("resume: %w: there is no store", session.ErrNoToken)
	}
	id, err := follow(ctx, store, id)
	if err != nil {
		return err
	}
	j.update(func(r *Result) { r.ID = id })
	journal, token, damaged, err := openJournal(ctx, store, id)
	if err != nil {
		return err
	}
	defer journal.close()
	switch {
	case damaged != nil:
		return damaged
	case token == nil:
		return fmt.Errorf("%w: %s", session.ErrNoToken, id)
	}
	j.want = token.Spec
	j.identify(id, j.want)
	if token.Endpoint != j.u.client.Endpoint() {
		return fmt.Errorf("upload %s was begun at %s: %w", id, token.Endpoint, session.ErrURIMismatch)
	}
	if token.SourceIdentity != "" {
		return fmt.Errorf("%w: the source of upload %s is %q, which has no path: only the program that began it can resume it", session.ErrInvalid, id, token.SourceIdentity)
	}
	j.keep(journal, token, token.SourcePath)
	if err := j.open(token.SourcePath); err != nil {
		return err
	}
	defer j.closeSource()
	return j.resume(ctx, token)
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

// keep makes the upload one that is saved in the journal. token is what is saved
// of it, nil if nothing is.
func (j *job) keep(journal *journal, token *session.Token, path string) {
	journal.events = j.events
	if token != nil {
		journal.adopt(token)
	}
	j.mu.Lock()
	j.journal = journal
	j.mu.Unlock()
	journal.draft.Endpoint, journal.draft.Spec, journal.draft.SourcePath = j.u.client.Endpoint(), withoutSecret(j.spec), path
	journal.draft.SourceIdentity = j.identity
}

// newRun returns a run for the next session.
func (j *job) newRun(s session.State) *run {
	return &run{transfer: j.transfer, precondition: &j.precondition, state: s}
}

// small reports whether the file goes in a single request.
func (j *job) small() bool { return j.u.single(j.file.src.Size()) }

// single reports whether a file of a size goes in a single request.
func (u *Uploader) single(size int64) bool {
	for _, limit := range []int64{u.opts.ChunkSize, u.opts.CommitEvery.Bytes} {
		if limit > 0 && size > limit {
			return false
		}
	}
	return size <= smallLimit
}

// fresh uploads a file from byte 0.
func (j *job) fresh(ctx context.Context) error {
	j.compress(j.spec.Gzip)
	if j.gzip != nil {
		return j.freshGzip(ctx)
	}
	size := j.file.src.Size()
	if !j.small() {
		if err := j.settleForNew(ctx); err != nil {
			return err
		}
		return j.uploadNew(ctx, size)
	}
	// A single request: there is nothing to save, and nothing to resume. A file
	// that is racy is read twice, which is faster than waiting.
	j.file.racy = j.file.src.Racy(j.file.identity)
	data, err := j.file.load(ctx)
	if err != nil {
		return j.transfer.sourceFailed(ctx, err)
	}
	return j.freshSmall(ctx, data)
}

// freshSmall uploads data, which is all of the source and is hashed, in a single
// request.
func (j *job) freshSmall(ctx context.Context, data []byte) error {
	if err := j.precondition.check(ctx); err != nil {
		return err
	}
	size := int64(len(data))
	if j.precondition.unmet() != nil {
		// Only a session shows whether the bucket is missing, too.
		return j.upload(ctx, j.newRun(session.State{Size: size}), session.Action{Step: session.Begin})
	}
	return j.insert(ctx, func() io.Reader { return bytes.NewReader(data) }, size, j.file.sum.Sum())
}

// uploadNew uploads the file through a new session. size is -1 if it is not known.
func (j *job) uploadNew(ctx context.Context, size int64) error {
	if j.journal != nil {
		j.journal.file, j.journal.gzip = j.file, j.gzip
		j.transfer.record = j.journal
	}
	return j.upload(ctx, j.newRun(session.State{Size: size}), session.Action{Step: session.Begin})
}

// insert uploads a content of size bytes in a single request. body returns the
// content as often as it is called.
func (j *job) insert(ctx context.Context, body func() io.Reader, size int64, crc32c uint32) error {
	if err := j.transfer.expected(crc32c); err != nil {
		return err
	}
	if err := j.transfer.expectedMD5(body(), size); err != nil {
		return err
	}
	return j.upload(ctx, j.newInsertion(body, size, crc32c), session.Action{Step: session.Begin})
}

// resume continues a saved session, unless that is of no use: then it starts
// over, and reports why.
func (j *job) resume(ctx context.Context, token *session.Token) error {
	saved, err := j.unlock(token.Spec, j.want.EncryptionKey)
	if err != nil {
		return err
	}
	j.want.EncryptionKey = saved.EncryptionKey
	if why := j.useless(token); why != "" {
		return j.startOver(ctx, why)
	}
	if err := j.settle(ctx); err != nil {
		return err
	}
	// The options that were not given are those of the first run.
	saved.NoClobber = saved.NoClobber || j.spec.NoClobber
	j.setSpec(saved)
	j.compress(saved.Gzip)
	token = withoutUnsent(token)
	if err := j.sameSource(ctx, token); err != nil {
		if !errors.Is(err, session.ErrSourceChanged) {
			return err
		}
		if !j.u.opts.RestartChanged {
			return sourceError(err)
		}
		return j.startOver(ctx, err.Error())
	}
	j.journal.adopt(token) // without what was not sent
	j.journal.file, j.journal.gzip = j.file, j.gzip
	j.transfer.record = j.journal
	// Enough to check an object that turns out to be finished already.
	if j.gzip != nil {
		j.gzip.adopt(token)
	} else {
		j.file.sum = chunk.NewPrefixCRC(token.Checkpoint(token.Source.Size))
	}
	size := j.transfer.content.total()
	j.transfer.pos.size.Store(size)
	r := j.newRun(session.State{
		Size: size, Committed: token.Committed, Sent: token.HighWater, Restarts: token.Restarts,
		// The earlier process may have sent the last byte.
		MayExist: token.HighWater == size,
		Adopted:  true,
		Rejected: token.RejectedAt > 0, RejectedAt: token.RejectedAt - 1,
	})
	r.uri, r.opened = token.URI, token.Created
	j.transfer.pos.committed.Store(token.Committed)
	j.resumed = token
	r.resume = j.resumeFrom
	return j.upload(ctx, r, session.Action{Step: session.Query})
}

// resumeFrom continues from what the server holds of the session. The checksum
// of that is known from a checkpoint and a short piece of the source that is
// read again.
func (j *job) resumeFrom(ctx context.Context, offset int64) error {
	token := j.resumed
	j.resumed = nil
	seek := func() error { return j.file.seek(ctx, token.Checkpoint(offset), offset) }
	if j.gzip != nil {
		seek = func() error { return j.gzip.seek(ctx, offset) }
	}
	if err := seek(); err != nil {
		return j.transfer.sourceFailed(ctx, err)
	}
	j.transfer.pos.sent.Store(offset)
	j.update(func(r *Result) { r.Resumed, r.ResumedFrom = true, offset })
	j.events.post(Event{Kind: Resumed})
	return nil
}

// startOver discards a saved session, reports why, and uploads from byte 0, with
// the options of this call.
func (j *job) startOver(ctx context.Context, why string) error {
	j.setSpec(j.want)
	j.events.post(Event{Kind: Discarded, Cause: why})
	if err := j.journal.discard(); err != nil {
		return err
	}
	return j.fresh(ctx)
}

// useless returns why a saved session cannot be resumed, or "" if it can.
func (j *job) useless(token *session.Token) string {
	if err := j.u.client.Adopt(token); err != nil {
		return err.Error()
	}
	if token.Endpoint != j.u.client.Endpoint() {
		return "the earlier upload was to another endpoint"
	}
	return ""
}

// sameSource checks that the file is the one with which the session began.
func (j *job) sameSource(ctx context.Context, token *session.Token) error {
	if j.identity != "" {
		if token.Source.Size != j.file.src.Size() {
			return fmt.Errorf("%w: %q has %d bytes, the source of the saved upload %d", session.ErrSourceChanged, j.identity, j.file.src.Size(), token.Source.Size)
		}
		if token.Gzip != nil {
			return nil // every checkpoint is compared
		}
		return j.file.compareLast(ctx, token.Checkpoints)
	}
	change := token.Source.Compare(j.file.identity)
	if imported(token) {
		j.file.copied = true
		if token.Source.Size == j.file.identity.Size {
			change = chunk.ChangeTimeOnly
		}
	}
	if change == chunk.Same && (token.Source.ChangeTimeNS == 0 || j.file.unsynced) {
		// There may have been changes that the times do not show: the platform
		// has no change time, the file was racy, or it cannot be synced.
		change = chunk.ChangeTimeOnly
	}
	switch change {
	case chunk.Same:
		return nil
	case chunk.ChangeTimeOnly:
		// A chmod, or an edit after which the modification time was put back:
		// the bytes decide, as far as their checksum is known. The service
		// compares the rest at the end.
		if token.Gzip == nil {
			return j.file.compare(ctx, token.Checkpoints...)
		}
		err := j.file.compare(ctx, token.Gzip.Source)
		if err == nil {
			j.file.copied = false // this covers all that was sent
		}
		return err
	}
	return fmt.Errorf("%w: %s is not the file that the upload began with (its size, modification time or inode differs)", session.ErrSourceChanged, token.SourcePath)
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

// discardCopy starts over with a file of which only the server's checksum showed
// that it is not the one with which the saved session began.
func (j *job) discardCopy(ctx context.Context, why error) error {
	j.file.copied, j.file.sum = false, chunk.NewPrefixCRC(chunk.Checkpoint{})
	j.unresume()
	return j.startOver(ctx, sourceError(why).Error())
}

// unresume forgets how far a saved session was.
func (j *job) unresume() {
	j.transfer.pos.sent.Store(0)
	j.transfer.pos.committed.Store(0)
	j.update(func(r *Result) { r.Resumed, r.ResumedFrom = false, 0 })
}

// verify compares the finished object with the source.
func (j *job) verify(ctx context.Context, object *session.Object) error {
	t := j.transfer
	ours, err := t.content.whole(ctx)
	if err != nil {
		return t.sourceFailed(ctx, err)
	}
	o, err := verifyObject(*object, j.spec, t.content.total(), ours)
	if err != nil {
		return t.retry.failure(&session.Error{Op: session.OpFinalize, Status: 200, Offset: t.pos.committed.Load(), Kind: session.ErrUnexpectedData}, err)
	}
	j.update(func(r *Result) {
		r.Object = o
		if j.resumed != nil {
			r.Resumed, r.ResumedFrom = true, o.Size // the earlier process finished it
		}
	})
	t.pos.committed.Store(o.Size)
	t.pos.sent.Store(o.Size)
	j.events.progress()
	return nil
}

// conclude deletes or updates the saved upload, depending on err, with which the
// upload ended.
func (j *job) conclude(err error) error {
	if !j.journal.saved() {
		return err
	}
	if err == nil || dead(err) || j.spec.NoClobber && errors.Is(err, session.ErrPrecondition) {
		if derr := j.journal.discard(); derr != nil {
			if err != nil {
				return errors.Join(err, derr)
			}
			j.events.post(Event{Kind: Warning, Cause: derr.Error()})
		}
		return err
	}
	if j.resumed == nil && !errors.Is(err, session.ErrSourceChanged) {
		// What is known of the source and the server by now makes the resume
		// cheaper, and notices more. The checksums of a source that changed
		// are not those of what was sent.
		if e, ok := errors.AsType[*session.Error](err); ok && e.Open {
			j.journal.rejected(e.Offset)
		}
		_, sent, committed := j.transfer.pos.load()
		_ = j.journal.sending(j.journal.ctx, committed, sent, committed) // a warning, if at all
	}
	return err
}

// dead reports whether an error ends the session, so that the next call must
// open another. A precondition that was seen not to hold before the last byte
// was sent leaves the session as it is.
func dead(err error) bool {
	if e, ok := errors.AsType[*session.Error](err); ok {
		if e.Open || e.Early {
			return false
		}
		if errors.Is(e, session.ErrPrecondition) {
			return true
		}
	}
	for _, kind := range []error{
		session.ErrSessionLost, session.ErrCanceled, session.ErrChecksum,
		session.ErrUnexpectedData, session.ErrProtocol, session.ErrURIMismatch,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
