package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"gcsup/internal/bucket"
	"gcsup/internal/grace"
	"gcsup/session"
	"gcsup/upload/internal/batch"
	"gcsup/upload/internal/engine"
)

// BatchOptions configure [Uploader.Files]. The zero value uses the defaults.
type BatchOptions struct {
	// Jobs is how many files are uploaded at a time. 0 means that the number grows while
	// throughput rises, for all batches of an Uploader together: from 32 up to 1,024 files of at
	// most 8 MiB, which are sent in a single request, and from 4 up to 64 larger files, which
	// get a session. There are fewer if this process may open few files. A file counts from when
	// it is opened until its outcome is known, even while it waits for a retry. If a listing may
	// show that it is unchanged, it counts from its first request.
	//
	// The small files of a batch use at most 64 MiB of memory. If Jobs is 0, this includes the
	// buffers of their connections.
	Jobs int

	// Skip leaves out files whose object exists. SkipNothing means the rule of
	// [CallOptions], if there is one.
	Skip Skip

	// PreservePOSIX writes the modification time, access time, owner, group and
	// permissions of each file to the metadata of its object, under the keys that
	// gcloud storage cp -P uses, such as goog-reserved-file-mtime and
	// goog-reserved-posix-mode. Windows has only the modification time.
	PreservePOSIX bool

	// Listing, if not nil, is listed to look up the destinations of jobs that are
	// sorted: see [Uploader.Lookup]. If it cannot be listed, the Observer gets a
	// Warning, and the destinations are looked up one by one.
	Listing *Listing

	// SkipIfListed applies Skip only if the service permits the Listing. Otherwise it uploads all
	// files, without a request for each destination.
	SkipIfListed bool

	// DryRun sends no data: the Result of a file that would be uploaded has
	// Planned set.
	DryRun bool

	// Sizes yields the sizes of all files of the batch, in any order. Their sum determines
	// the number of retries of each upload. It is therefore needed only while the service
	// fails. If Sizes is nil, only files that were started count.
	Sizes iter.Seq[int64]
}

// batchMemory bounds the bytes of small files in memory.
const batchMemory = 64 << 20

// Files uploads the files that jobs yields, several at a time, and yields one
// result for each job, in the order in which they end. A failure of one file does
// not affect the others, with these exceptions, which end with [ErrNotTried]:
//
//   - the files of a bucket that does not exist, or that does not accept the
//     credentials ([session.ErrNotFound], [session.ErrCredentials]);
//   - the files of a bucket in which three uploads were denied and none succeeded
//     ([session.ErrPermission]);
//   - all remaining files, when a file has used up its retries, and since its first
//     failure no upload has succeeded and no large upload has progressed
//     ([session.ErrRetriesExhausted]). If an upload succeeds later, the next files are
//     tried again.
//
// All uploads share the circuit breaker. Each has as many retries as one file with the size of
// the batch would have. While the service fails, the breaker may block them for twice as long as
// these retries can wait.
//
// Jobs are read as they are needed, at most a few thousand ahead. Small files are not
// locked or saved. When ctx is done, or the loop over the results ends, no more jobs
// are read, and the uploads under way are interrupted. If ctx is done, they still
// yield their results.
//
// Files calls jobs in another goroutine.
func (u *Uploader) Files(ctx context.Context, jobs iter.Seq[Job], opts *BatchOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) { newFilesCall(ctx, u, opts).run(jobs, yield) }
}

// filesCall is one call of [Uploader.Files] or [Uploader.Compare].
type filesCall struct {
	u          *Uploader
	ctx        context.Context
	cancel     context.CancelFunc
	opts       BatchOptions
	comparison *comparison // nil for Files
	budget     *engine.SharedBudget
	memory     *semaphore.Weighted
	saved      []string // IDs of the uploads that were saved when the batch began
	failFast   *batch.FailFast
	counting   atomic.Bool // the sizes are being added up, or all of them were
	uncompared atomic.Bool // SkipIfListed, and the listing was refused
	pool       *batch.Pool[Job, jobResult]
}

// jobResult is the result of a job.
type jobResult struct {
	result *Result
	err    error
}

func newFilesCall(ctx context.Context, u *Uploader, opts *BatchOptions) *filesCall {
	b := &filesCall{opts: *cmp.Or(opts, &BatchOptions{}), budget: u.newBudget()}
	b.ctx, b.cancel = context.WithCancel(ctx)
	b.opts.Skip = cmp.Or(b.opts.Skip, u.rule)
	small, large := batch.Deciders(batch.OpenFiles())
	b.pool = batch.NewPool(b.ctx,
		batch.Kind{Fixed: b.opts.Jobs, Limiter: u.small, Deciders: small},
		batch.Kind{Fixed: b.opts.Jobs, Limiter: u.large, Deciders: large, Streams: true},
		b.opts.Jobs, b.do)
	own := *u
	own.goroutines = b.pool.Goroutines
	b.u = &own
	if b.opts.Sizes != nil {
		b.budget.Blocked = b.count
	}
	b.failFast = batch.NewFailFast(b.budget.Progress)
	b.memory = semaphore.NewWeighted(u.batchMemory)
	return b
}

// run yields the outcomes of jobs. It returns false if the iteration ended early.
func (b *filesCall) run(jobs iter.Seq[Job], yield func(*Result, error) bool) bool {
	defer b.pool.Drain()
	defer b.cancel()
	return b.pool.Run(func() { b.read(jobs) }, func(o jobResult) bool { return yield(o.result, o.err) })
}

// read passes the jobs to the pool.
func (b *filesCall) read(jobs iter.Seq[Job]) {
	if b.opts.Listing != nil && b.opts.Skip != SkipNothing {
		jobs = b.lookUp(jobs)
	}
	if store := b.u.opts.Store; store != nil && b.comparison == nil {
		// A file that is small now may have been large, and its upload saved. An error of the
		// store is reported when a large file needs it.
		ctx, done := storeCall(b.ctx, b.u)
		b.saved, _ = store.List(ctx)
		done()
	}
	for job := range jobs {
		if !b.pool.Put(job, !b.u.opts.single(b.size(job)), b.undecided(job)) {
			return
		}
	}
}

// lookUp looks up the destinations of jobs in the listing.
func (b *filesCall) lookUp(jobs iter.Seq[Job]) iter.Seq[Job] {
	return func(yield func(Job) bool) {
		for job, err := range lookup(b.ctx, b.u, *b.opts.Listing, b.budget, jobs) {
			if err != nil {
				if b.ctx.Err() != nil {
					return
				}
				if b.comparison != nil && endsComparison(err) {
					b.comparison.unlisted.Store(&err)
					return
				}
				what := "each destination is looked up"
				if b.opts.SkipIfListed && engine.Refusal(err) {
					b.uncompared.Store(true)
					if errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrCredentials) {
						continue // the uploads have the same error
					}
					what = "files are uploaded without a comparison"
				}
				spec := Spec{Bucket: b.opts.Listing.Bucket, Object: b.opts.Listing.Prefix}
				b.observe(Event{Kind: Warning, Spec: spec, Size: -1, Cause: what + ", because the bucket cannot be listed: " + err.Error(), Err: err})
				continue
			}
			if !yield(job) {
				return
			}
		}
	}
}

// size returns the size of the file of a job, which may be unknown.
func (b *filesCall) size(job Job) int64 {
	if job.Size == 0 && job.ModTime.IsZero() && job.Err == nil {
		if info, err := os.Stat(job.Path); err == nil {
			return info.Size()
		}
	}
	return job.Size
}

// unread reports whether a job is skipped without opening its file, because the
// listings of the file and of its object suffice.
func (b *filesCall) unread(job Job) bool {
	switch {
	case !job.Listed || job.Object == nil:
		return false
	case b.opts.Skip == SkipExisting:
		return true
	case b.opts.Skip == SkipSameTime && !job.ModTime.IsZero():
		if !job.Spec.EncryptionKey.IsZero() && job.Object.HasCRC32C {
			return false // the object is not encrypted with a key, see skip
		}
		return batch.CompareTime(job.Spec.Gzip, job.Size, job.ModTime, job.Object) == batch.SameTime
	}
	return false
}

// rule returns the rule for a job.
func (b *filesCall) rule(job Job) Skip {
	if b.uncompared.Load() && !job.Listed {
		return SkipNothing
	}
	return b.opts.Skip
}

// undecided reports whether the file of a job may need no request.
func (b *filesCall) undecided(job Job) bool {
	return b.opts.DryRun || b.opts.Skip != SkipNothing && job.Listed && job.Object != nil
}

// do uploads the file of a job at a place. It returns the bytes of the object, if it was made.
func (b *filesCall) do(job Job, at *batch.Place) (jobResult, int64) {
	err := job.Err
	if err == nil {
		err = b.notTried(job.Spec)
	}
	if err != nil {
		return b.untried(Result{Spec: job.Spec, Path: job.Path, Size: -1}, err), 0
	}
	if b.unread(job) && (b.opts.Skip == SkipExisting || !b.u.removal.wanted) {
		return b.untried(Result{Spec: job.Spec, Path: job.Path, Size: job.Size, Skipped: b.opts.Skip, Object: job.Object}, nil), 0
	}
	c := newCall(b.ctx, b.u, job.Spec, b.budget)
	c.rule, c.batch = b.rule(job), true
	if at.Limited() {
		c.uplink.Place = at
	}
	result, err := c.do(b.ctx, func(ctx context.Context) error { return b.upload(ctx, c, job, at) })
	switch {
	case err != nil:
		b.failFast.Failed(job.Spec.Bucket, err)
	case result.Skipped == SkipNothing && !result.Planned:
		b.failFast.Succeeded(job.Spec.Bucket)
	}
	if err != nil || result.Skipped != SkipNothing {
		return jobResult{result, err}, 0
	}
	return jobResult{result, nil}, result.Size
}

// upload uploads a file of the batch at a place, unless it is skipped.
func (b *filesCall) upload(ctx context.Context, c *call, job Job, at *batch.Place) error {
	turn := func(ctx context.Context) error {
		switch waited, err := at.Take(ctx); {
		case err != nil:
			return engine.NewInterruption(ctx, nil)
		case waited:
			return b.notTried(job.Spec) // other files may have failed during the wait
		}
		return nil
	}
	c.result.label.set(func(n *names) { n.path = job.Path }) // it may end before it is opened
	if err := c.validate(); err != nil {
		return err
	}
	if !b.undecided(job) {
		// The limiter counts the time in which the file is read, too. It then finds how many
		// files a slow source needs.
		if err := turn(ctx); err != nil {
			return err
		}
	}
	f, err := openPath(ctx, c, job.Path, job.Below)
	if err != nil {
		return err
	}
	defer f.close()
	if b.opts.PreservePOSIX {
		f.spec = withPOSIX(f.spec, f.file.Info())
	}
	f.detect(f.file.Head)
	there := &destination{openFile: f, listed: job.Listed, turn: turn}
	skipped, err := there.skipped(ctx, job.Listed, job.Object)
	switch {
	case b.comparison != nil:
		f.file.Release()
		return b.compare(ctx, there, skipped, err)
	case err != nil || skipped && b.opts.DryRun:
		return err
	case b.opts.DryRun:
		return checkPlan(ctx, f.call)
	case skipped:
		return f.thenRemove(ctx, nil)
	}
	if err := turn(ctx); err != nil {
		return err
	}
	// All files wait for their turn before they wait for memory. If one waited for them in the
	// other order, each could have what the other waits for.
	release, err := b.holdMemory(ctx, f, at)
	if err != nil {
		return err
	}
	defer release()
	path := job.Path
	if f.small() && len(b.saved) == 0 {
		path = "" // nothing is saved
	}
	return f.thenRemove(ctx, there.upload(ctx, path, ""))
}

// holdMemory waits for the memory of a small file, and returns a function that releases it.
func (b *filesCall) holdMemory(ctx context.Context, f *openFile, at *batch.Place) (release func(), err error) {
	if !f.small() {
		return func() {}, nil
	}
	size := f.file.Total()
	if at.Limited() {
		size += connectionMemory(size)
	}
	size = min(size, b.u.batchMemory)
	if err := b.memory.Acquire(ctx, size); err != nil {
		return nil, engine.NewInterruption(ctx, nil)
	}
	return func() { b.memory.Release(size) }, nil
}

// checkPlan ends the call of a dry run: it checks the precondition and sends nothing.
func checkPlan(ctx context.Context, c *call) error {
	if err := c.precondition.Look(ctx, c.wire()); err != nil {
		return err
	}
	if err := c.precondition.Unmet(); err != nil {
		return err
	}
	c.result.update(func(r *Result) { r.Planned = true })
	return nil
}

// notTried returns why no file of the bucket of spec is tried, or nil.
func (b *filesCall) notTried(spec Spec) error {
	if why := b.failFast.Err(spec.Bucket); why != nil {
		return fmt.Errorf("%w: %w", ErrNotTried, why)
	}
	return nil
}

// untried reports the outcome of a job that was not started.
func (b *filesCall) untried(res Result, err error) jobResult {
	e := terminal(b.ctx, res, err)
	e.Upload, e.Path, e.Spec, e.Size = uploads.Add(1), res.Path, res.Spec, res.Size
	b.observe(e)
	return jobResult{&res, err}
}

// observe delivers an event of no upload, or of one that was not started. There may be millions of
// them, so they have no queue.
func (b *filesCall) observe(e Event) {
	if b.u.opts.Observer == nil {
		return
	}
	e.Time, e.ctx = time.Now(), b.ctx
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.u.opts.Observer(e)
	}()
	batch.Await(b.ctx, done, grace.Event)
}

// count adds up the sizes of all files once, as long as the circuit breaker is open. The sum
// is not needed otherwise.
func (b *filesCall) count() {
	if !b.counting.CompareAndSwap(false, true) {
		return
	}
	go func() {
		var total int64
		for size := range b.opts.Sizes {
			total += size
			b.budget.Counted.Store(max(b.budget.Counted.Load(), total))
			if b.ctx.Err() != nil || !b.u.opts.Breaker.Open() {
				b.counting.Store(false) // the next call starts over
				return
			}
		}
	}()
}

// Compare compares the files of jobs with the objects at their destinations. It sends no data and
// changes nothing. Like [Uploader.Files], it yields one Result for each job, in the order in
// which they end: Difference is the outcome, and Object is the object at the destination, nil if
// there is none. Planned is set if they differ. A file is read only if its object has the same
// size. The object determines whether the file is compressed for the comparison, as with
// [SkipSameContent].
//
// Only Jobs, Listing and Sizes of opts apply; a nil opts uses the defaults. If the
// Listing fails because there is no such bucket, because the credentials are not accepted or
// because the service cannot be reached, no more jobs are read, and the last pair has the error
// and no Result. After any other failure of the listing, the objects are looked up one by one.
// If there is no such bucket, the error of a file wraps [session.ErrNotFound].
func (u *Uploader) Compare(ctx context.Context, jobs iter.Seq[Job], opts *BatchOptions) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		b := newFilesCall(ctx, u, opts)
		b.opts.Skip, b.opts.DryRun, b.opts.PreservePOSIX = SkipSameContent, true, false
		b.comparison = &comparison{}
		if !b.run(jobs, yield) || ctx.Err() != nil {
			return
		}
		if failed := b.comparison.unlisted.Load(); failed != nil {
			yield(nil, *failed)
		}
	}
}

// comparison is what a call of [Uploader.Compare] knows of all files.
type comparison struct {
	unlisted atomic.Pointer[error] // the error that ended the listing
	buckets  sync.Map              // by the names of the buckets that exist
}

// endsComparison reports whether the error of a listing applies to every object.
func endsComparison(err error) bool {
	return errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrCredentials) || errors.Is(err, session.ErrRetriesExhausted)
}

// compare ends the comparison of a file with the object that is there. equal and err are the outcome of the rule.
func (b *filesCall) compare(ctx context.Context, there *destination, equal bool, err error) error {
	if err == nil && !equal {
		err = there.refused
	}
	if err == nil && !equal && there.found == nil && !there.listed {
		err = b.findBucket(ctx, there.spec)
	}
	if err != nil {
		return err
	}
	d := ObjectEqual
	if !equal {
		d = there.difference()
	}
	there.result.update(func(r *Result) { r.Object, r.Difference, r.Planned = there.found, d, !equal })
	return nil
}

// findBucket returns an error if there is no such bucket. The reply to a request for an object does not
// show it. If the listing is not allowed, the bucket exists.
func (b *filesCall) findBucket(ctx context.Context, spec Spec) error {
	if _, known := b.comparison.buckets.Load(spec.Bucket); known {
		return nil
	}
	lister := newLister(ctx, b.u, Listing{Bucket: spec.Bucket, UserProject: spec.UserProject}, b.budget)
	defer lister.close(ctx)
	_, err := lister.page(ctx, bucket.Query{Bucket: spec.Bucket, MaxResults: 1, UserProject: spec.UserProject})
	if err != nil && (errors.Is(err, session.ErrNotFound) || !engine.Refusal(err)) {
		return err
	}
	b.comparison.buckets.Store(spec.Bucket, nil)
	return nil
}
