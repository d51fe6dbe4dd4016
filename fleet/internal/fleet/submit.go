package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"gcsup/session"
	"gcsup/upload"
)

// Submission describes what Submit puts into the queue. Name, Ledger and Report
// are optional.
type Submission struct {
	// Jobs yields the files, sorted by the raw bytes of the names of their objects, like
	// a [gcsup/upload/tree.Tree] with Options.Sorted. Only the object name of their Spec
	// is used.
	Jobs iter.Seq[upload.Job]

	// Listing describes a listing that includes the destinations of all files. Submit lists it
	// once. Its bucket is that of all objects.
	Listing upload.Listing

	// Settings has the attributes of all objects, without a name and without preconditions.
	Settings upload.Spec

	// Uploader is used only to look up the objects at the destinations. Its endpoint is that of the
	// submission: workers with another endpoint refuse the files.
	Uploader *upload.Uploader

	// Name distinguishes submissions to the same destination, for example by their sources. The
	// record of a submission replaces that of an earlier one with the same name and destination:
	// files of the earlier one that the later one does not have are then not needed any more.
	Name string

	// Ledger, if not nil, keeps a record of the submission in the state bucket.
	Ledger *Ledger

	// Report, if not nil, is called for each file that cannot be submitted. If the listing
	// fails, it is called with an empty Path, and the destinations are looked up one by one.
	// Calls do not overlap.
	Report func(job upload.Job, err error)
}

// Submitted counts the files of a Submission.
type Submitted struct {
	Files, Bytes int64 // put into the queue by this call
	Queued       int64 // files that were in the queue already
	Changed      int64 // files of Queued that differ from their message in the queue; they must be submitted again
	Finished     int64 // files that are finished according to the records
	Failed       int64 // files that cannot be submitted, see Report
}

// forever is later than each message.
var forever = time.Unix(1<<33, 0)

// submitJobs is how many tasks are submitted at a time.
const submitJobs = 16

// Submit puts the files of a tree into the queue. It can be repeated: files in the
// queue are not added again, and finished files are left out. If a record is missing,
// a worker finds out that the file is finished. Submit keeps some thousand files
// in memory. If the bucket does not exist, the error wraps [session.ErrNotFound].
func Submit(ctx context.Context, q *Queue, s Submission) (Submitted, error) {
	sub := &submitter{Submission: s, q: q}
	sub.Settings.Bucket = s.Listing.Bucket
	r := submissionRecord{V: 1, Destination: s.destination(), Started: time.Now().UTC(), Settings: digest(sub.Settings)}
	var err error
	if r.Queue, err = q.created(ctx); err != nil {
		return sub.done, err
	}
	earlier, err := sub.recorded(ctx)
	if err == nil {
		r.Replaces, err = sub.replacesObjects(ctx, r, earlier)
		sub.replaces = r.Replaces
	}
	if err != nil {
		return sub.done, err
	}
	if err := sub.recordInQueue(ctx, r); err != nil {
		return sub.done, err
	}
	sub.begin = sync.OnceValue(func() error {
		sub.begun = true
		return sub.recordInLedger(ctx, r)
	})
	tasks, each := errgroup.WithContext(ctx) // each ends with the first error
	tasks.SetLimit(submitJobs)
	for group := range groups(sub.files(each)) {
		tasks.Go(func() error { return sub.add(each, group) })
	}
	err = tasks.Wait()
	switch {
	case err == nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == nil && sub.missing != nil:
		err = fmt.Errorf("submit to bucket %s: %w", s.Listing.Bucket, sub.missing)
	}
	if err != nil && (sub.begun || sub.missing == nil) {
		return sub.done, err // the record shows that this submit has not ended
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), stateFor)
	defer cancel()
	// Changed files are not in the queue: a worker may finish what they were before.
	r.Complete, r.Files, r.Bytes = sub.done.Changed == 0, int64(sub.total.Files), sub.total.Bytes
	var failed error
	switch {
	case sub.begun:
		if failed = sub.recordInQueue(last, r); failed == nil {
			failed = sub.recordInLedger(last, r)
		}
	case earlier != nil: // there are no files, perhaps because of a missing mount
		failed = sub.recordInQueue(last, *earlier)
	case err != nil: // the bucket does not exist
		failed = sub.forget(last)
	default:
		failed = sub.recordInQueue(last, r)
	}
	return sub.done, cmp.Or(err, failed)
}

// submitter is a running call of Submit.
type submitter struct {
	Submission
	q        *Queue
	missing  error // the bucket does not exist
	replaces bool  // see submissionRecord

	begin func() error // records the submission in the Ledger, once, before the first task
	begun bool         // begin was called

	mu    sync.Mutex
	done  Submitted
	total Count // of all files, even if they were in the queue or finished before
}

// files yields the files that can be submitted, and reports the others.
func (s *submitter) files(ctx context.Context) iter.Seq[listed] {
	return func(yield func(listed) bool) {
		for job, err := range s.Uploader.Lookup(ctx, s.Listing, s.Jobs) {
			if ctx.Err() != nil {
				return
			}
			if errors.Is(err, session.ErrNotFound) {
				s.missing = err
				return
			}
			if err != nil {
				s.report(upload.Job{}, err)
				continue
			}
			f, err := newFile(job)
			if err == nil {
				t := Task{V: taskVersion, Fleet: s.q.opts.Fleet, Submission: s.id(), Endpoint: s.Uploader.Endpoint(), Settings: s.Settings, Files: []File{f}}
				err = t.validate()
			}
			if err != nil {
				s.fail(job, err)
				continue
			}
			if !yield(listed{file: f, job: job}) {
				return
			}
		}
	}
}

// newFile returns the File for a job.
func newFile(job upload.Job) (File, error) {
	if job.Err != nil {
		return File{}, job.Err
	}
	path, err := filepath.Abs(job.Path)
	if err != nil {
		return File{}, err
	}
	f := File{Path: path, Object: job.Spec.Object, Size: job.Size, ModTimeNS: job.ModTime.UnixNano()}
	if job.Object != nil {
		f.Generation = job.Object.Generation
	}
	return f, nil
}

// add puts a group of files into the queue as one task.
func (s *submitter) add(ctx context.Context, group []listed) error {
	if err := s.lookUp(ctx, group); err != nil {
		return err
	}
	t := &Task{V: taskVersion, Fleet: s.q.opts.Fleet, Submission: s.id(), Endpoint: s.Uploader.Endpoint(), Settings: s.Settings}
	for _, f := range group {
		t.Files = append(t.Files, f.file)
	}
	finished, added, changed := false, false, 0
	var letters map[string]uint64 // read before a worker can fail the task again
	err := s.q.repeat(ctx, func() (err error) {
		letters, err = s.q.letters(ctx, t, t.Files, forever)
		return err
	})
	if err == nil {
		err = s.begin()
	}
	if err != nil {
		return fmt.Errorf("submit %s: %w", t.Name(), err)
	}
	err = s.q.repeat(ctx, func() error {
		before, err := s.q.stored(ctx, t.ID())
		if err != nil {
			return err
		}
		if finished = before.State == stateDone && before.Fingerprint == fingerprint(t.Settings, t.Files); finished {
			return nil
		}
		if t.Replace = s.replaces; before.Settings != "" {
			t.Replace = before.Settings != digest(t.Settings)
		}
		s.q.sign(t)
		if added, changed, err = s.q.enqueue(ctx, t, before); err != nil || !added {
			return err
		}
		return s.q.dropLetters(ctx, letters)
	})
	if err != nil {
		return fmt.Errorf("submit %s: %w", t.Name(), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.Files += len(t.Files)
	s.total.Bytes += t.Bytes()
	switch files := int64(len(t.Files)); {
	case finished:
		s.done.Finished += files
	case added:
		s.done.Files += files
		s.done.Bytes += t.Bytes()
	default:
		s.done.Queued += files
		s.done.Changed += int64(changed)
	}
	return nil
}

// lookUp sets the generations of files whose destination was not listed. It makes a
// dry run of an upload with the precondition that there is no object. The error then
// has the object.
func (s *submitter) lookUp(ctx context.Context, group []listed) error {
	var jobs []upload.Job
	unlisted := map[string]*File{}
	for i, f := range group {
		if !f.job.Listed {
			job := f.job
			job.Spec.IfGenerationMatch = new(int64)
			jobs = append(jobs, job)
			unlisted[job.Spec.Object] = &group[i].file
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	all := func(yield func(upload.Job) bool) {
		for _, job := range jobs {
			if !yield(job) {
				return
			}
		}
	}
	for res, err := range s.Uploader.Files(ctx, all, &upload.BatchOptions{DryRun: true}) {
		refused, ok := errors.AsType[*session.Error](err)
		switch {
		case ok && refused.Early && refused.Existing != nil:
			unlisted[res.Spec.Object].Generation = refused.Existing.Generation
		case errors.Is(err, session.ErrRetriesExhausted), errors.Is(err, session.ErrCredentials), ctx.Err() != nil:
			return err
		}
		// The worker will report other errors, such as that of a removed file.
	}
	return nil
}

// fail counts and reports a file that cannot be submitted.
func (s *submitter) fail(job upload.Job, err error) {
	s.mu.Lock()
	s.done.Failed++
	s.mu.Unlock()
	s.report(job, err)
}

func (s *submitter) report(job upload.Job, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Report != nil {
		s.Report(job, err)
	}
}
