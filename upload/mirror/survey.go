package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"gcsup/session"
	"gcsup/upload"
)

// survey is what a run knows at the end of its plan.
type survey struct {
	files    int64 // that can be read
	objects  int64 // below the prefix
	deletes  *spool
	protects *spool
	appeared *spool // of deletes, those whose file was made meanwhile
	folders  *spool // below the prefix that had objects of deletes
	down     error  // why the service does not delete objects; nil if it does
	err      error  // that ended the plan
}

// surveyor makes the survey of a run. [upload.Uploader.Files] reads the jobs in another goroutine, which
// it may leave behind if a file server does not respond. That goroutine then closes the survey.
type surveyor struct {
	m *Mirror
	u *upload.Uploader

	mu      sync.Mutex
	done    *survey // nil until the plan ended, and after take
	dropped bool
}

// jobs yields the jobs of the plan. The survey is complete when it returns.
func (s *surveyor) jobs(ctx context.Context) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		dir := s.m.opts.TempDir
		spool := func() *spool { return newSpool(s.m.listing.Bucket, dir) }
		v := &survey{deletes: spool(), protects: spool(), appeared: spool(), folders: spool()}
		defer func() { s.put(v) }()
		for a, err := range s.m.Plan(ctx, s.u) {
			if err == nil && a.Object != nil {
				v.objects++
			}
			switch {
			case err != nil:
			case a.Kind == Delete:
				err = v.deletes.add(a.Object, a.Reason)
			case a.Kind == Protect:
				err = v.protects.add(a.Object, a.Reason)
			default:
				if a.Job.Err == nil {
					v.files++
				}
				if !yield(a.Job) {
					v.err = fmt.Errorf("%w: the files were not read to their end", ErrIncomplete)
					return
				}
			}
			if err != nil {
				v.err = err
				return
			}
		}
	}
}

// put hands over the survey, or closes it if no caller wants it.
func (s *surveyor) put(v *survey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done = v; s.dropped {
		v.close()
	}
}

// take returns the survey, or nil if the plan has not ended.
func (s *surveyor) take() *survey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

// close closes the survey, now or at the end of the plan.
func (s *surveyor) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped = true; s.done != nil {
		s.done.close()
	}
}

func (v *survey) close() {
	v.deletes.close()
	v.protects.close()
	v.appeared.close()
	v.folders.close()
}

// check returns an error if nothing may be deleted. failed is the number of files and directories that
// failed.
func (v *survey) check(failed int64, limit Limit) error {
	n := v.deletes.n
	switch {
	case n == 0:
		return nil
	case failed > 0:
		return fmt.Errorf("%w (%d), because %d files or directories failed", ErrIncomplete, n, failed)
	case v.files == 0:
		what := "objects without a file are"
		if n == 1 {
			what = "object without a file is"
		}
		return fmt.Errorf("%w in the directory: %d %s not deleted; to delete a whole prefix, use another program", ErrNoFiles, n, what)
	case !limit.allows(n, v.objects):
		return fmt.Errorf("%w: %d of %d objects have no file, and the limit is %v; none is deleted", ErrTooManyDeletions, n, v.objects, limit)
	}
	return nil
}

// kept yields the outcomes of objects that are not deleted.
func kept(objects *spool) iter.Seq2[Outcome, error] {
	return func(yield func(Outcome, error) bool) {
		for e, err := range objects.entries() {
			if !yield(Outcome{Kind: Protect, Object: e.object, Reason: e.reason}, err) {
				return
			}
		}
	}
}

// planned yields the objects without a file as deletions that are not made.
func (v *survey) planned() iter.Seq2[Outcome, error] {
	return func(yield func(Outcome, error) bool) {
		for e, err := range v.deletes.entries() {
			if !yield(Outcome{Kind: Delete, Object: e.object, Planned: true}, err) {
				return
			}
		}
	}
}

// delete deletes the objects without a file, and yields the outcomes. It leaves those whose file was made
// after the directory was read, because another program may upload and remove it.
func (v *survey) delete(ctx context.Context, m *Mirror, u *upload.Uploader) iter.Seq2[Outcome, error] {
	return func(yield func(Outcome, error) bool) {
		var failed error // written by the goroutine that reads the objects, which ends before the loop
		var last string  // the object before; its folders are in v.folders
		objects := func(yield func(*session.Object) bool) {
			for e, err := range v.deletes.entries() {
				if err == nil && e.reason == NoReason {
					appeared, ok := unlessDone(ctx, func() bool { return m.hasFile(e.object.Name) })
					if !ok {
						return // deleteRest reports that ctx is done
					}
					if appeared {
						if err = v.appeared.add(e.object, Appeared); err == nil {
							continue
						}
					}
				}
				if err == nil {
					err = v.addFolders(m.listing.Prefix, last, e.object)
					last = e.object.Name
				}
				if err != nil {
					failed = err
					return
				}
				if !yield(e.object) {
					return
				}
			}
		}
		opts := &upload.DeleteOptions{Jobs: m.opts.Batch.Jobs, UserProject: m.listing.UserProject}
		for o, err := range u.Delete(ctx, objects, opts) {
			if err != nil && !errors.Is(err, session.ErrPrecondition) && !errors.Is(err, session.ErrPermission) {
				v.down = cmp.Or(v.down, err)
			}
			if !yield(Outcome{Kind: Delete, Object: o}, err) {
				return
			}
		}
		if failed != nil {
			yield(Outcome{}, failed)
		}
	}
}
