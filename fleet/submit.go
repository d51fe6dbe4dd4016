package fleet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"gcsup/session"
	"gcsup/upload"
)

// Submission is what Submit puts into the queue.
type Submission struct {
	// Jobs are the files, sorted by the raw bytes of their objects' names, as those of
	// a [gcsup/upload/tree.Tree] with Options.Sorted. Of their Spec only the name counts.
	Jobs iter.Seq[upload.Job]

	// Listing has the destinations of all files. It is listed once.
	Listing upload.Listing

	// Settings is the template of the objects, without a name and a precondition.
	Settings upload.Spec

	// Uploader looks up the objects at the destinations. It uploads nothing.
	Uploader *upload.Uploader

	// Report, if not nil, is called for each file that cannot be submitted, and, with
	// an empty Path, for a listing that failed: then the destinations are looked up one by
	// one. If the bucket does not exist, Submit fails. Calls do not overlap.
	Report func(job upload.Job, err error)
}

// Submitted counts the files of a Submission.
type Submitted struct {
	Files, Bytes int64 // that were put into the queue
	Queued       int64 // files that were in the queue already
	Changed      int64 // of those, files that differ from what is in the queue: a worker may have read them before
	Finished     int64 // files whose object was made of them by this fleet, as its records show
	Failed       int64 // files that were reported
}

// submitJobs is how many tasks are submitted at a time.
const submitJobs = 16

// Submit puts the files of a tree into the queue. It can be repeated: what is in the queue
// is not added again, and what is finished is left out, or found to be finished by a
// worker. It holds some thousand files in memory, however many there are.
func Submit(ctx context.Context, q *Queue, s Submission) (Submitted, error) {
	sub := &submitter{Submission: s, q: q}
	sub.Settings.Bucket = s.Listing.Bucket
	tasks, each := errgroup.WithContext(ctx) // each ends with the first error
	tasks.SetLimit(submitJobs)
	for group := range groups(sub.files(each)) {
		tasks.Go(func() error { return sub.add(each, group) })
	}
	err := tasks.Wait()
	switch {
	case err == nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == nil && sub.missing != nil:
		err = fmt.Errorf("submit to bucket %s: %w", s.Listing.Bucket, sub.missing)
	}
	return sub.done, err
}

type submitter struct {
	Submission
	q       *Queue
	missing error // of the bucket that does not exist

	mu   sync.Mutex
	done Submitted
}

// files yields the files that can be submitted.
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
				t := Task{V: taskVersion, Settings: s.Settings, Files: []File{f}}
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

// newFile returns the file of a job.
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

// add puts the files of a group into the queue.
func (s *submitter) add(ctx context.Context, group []listed) error {
	if err := s.lookUp(ctx, group); err != nil {
		return err
	}
	t := &Task{V: taskVersion, Settings: s.Settings}
	for _, f := range group {
		t.Files = append(t.Files, f.file)
	}
	finished, added, changed := false, false, 0
	var letters map[string]uint64 // before a worker can have the task
	err := s.q.restored(ctx, func() (err error) {
		letters, err = s.q.letters(ctx, t, t.Files)
		return err
	})
	if err != nil {
		return fmt.Errorf("submit %s: %w", t.Name(), err)
	}
	err = s.q.restored(ctx, func() error {
		before, _, err := s.q.record(ctx, t.ID())
		if err != nil {
			return err
		}
		if finished = before.State == stateDone && before.Fingerprint == fingerprint(t.Files); finished {
			return nil
		}
		if added, changed, err = s.q.enqueue(ctx, t); err != nil || !added {
			return err
		}
		return s.q.dropLetters(ctx, letters)
	})
	if err != nil {
		return fmt.Errorf("submit %s: %w", t.Name(), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
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

// lookUp sets the generations of files whose destination was not listed. A dry run of an
// upload that must not replace an object shows the object.
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
		// Another error, such as that of a file which was removed, is the worker's.
	}
	return nil
}

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
