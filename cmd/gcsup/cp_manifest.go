package main

import (
	"context"
	"iter"
	"sync"

	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/manifest"
)

// batchManifest is the manifest of a batch. A nil *batchManifest records nothing.
type batchManifest struct {
	m *manifest.Manifest

	mu  sync.Mutex
	err error // the first failure to read or write
}

func openManifest(path, endpoint string) (*batchManifest, error) {
	m, err := manifest.Open(path, endpoint)
	if err != nil {
		return nil, err // contains the path
	}
	return &batchManifest{m: m}, nil
}

// unfinished yields the jobs that the manifest does not record as finished.
func (r *batchManifest) unfinished(ctx context.Context, jobs iter.Seq[upload.Job]) iter.Seq[upload.Job] {
	return r.untilError(ctx, r.m.Skip(ctx, jobs))
}

// lookedUp yields the jobs with their objects. If the bucket cannot be listed, it yields no more.
func (r *batchManifest) lookedUp(ctx context.Context, u *upload.Uploader, l upload.Listing, jobs iter.Seq[upload.Job]) iter.Seq[upload.Job] {
	return r.untilError(ctx, func(yield func(upload.Job, error) bool) {
		for job, err := range u.Lookup(ctx, l, jobs) {
			if err == nil && job.Err == nil && !job.Listed { // the bucket has many other objects
				one := upload.Listing{Bucket: l.Bucket, Prefix: job.Spec.Object, UserProject: l.UserProject}
				job.Object, err = object(u.List(ctx, one), job.Spec.Object)
				job.Listed = err == nil
			}
			if !yield(job, err) {
				return
			}
		}
	})
}

// untilError yields the jobs before the first error, which it records unless ctx is done.
func (r *batchManifest) untilError(ctx context.Context, jobs iter.Seq2[upload.Job, error]) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for job, err := range jobs {
			if err != nil {
				if ctx.Err() == nil {
					r.fail(err)
				}
				return
			}
			if !yield(job) {
				return
			}
		}
	}
}

// object returns the object with that name, or nil. No other name in a listing of this prefix comes before it.
func object(listing iter.Seq2[*session.Object, error], name string) (*session.Object, error) {
	for o, err := range listing {
		if err != nil || o.Name != name {
			return nil, err
		}
		return o, nil
	}
	return nil, nil
}

// add records the outcome of a file. notFile reports that it is skipped because it is
// not a file.
func (r *batchManifest) add(res *upload.Result, notFile bool, err error) error {
	if r == nil {
		return nil
	}
	line, ok := manifest.NewRecord(res, err)
	if !ok {
		return nil
	}
	if notFile {
		line.Status = manifest.Skipped
	}
	if err := r.m.Record(line); err != nil {
		r.fail(err)
		return err
	}
	return nil
}

func (r *batchManifest) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// close makes the records durable. It returns the first failure.
func (r *batchManifest) close() error {
	if r == nil {
		return nil
	}
	if err := r.m.Close(); err != nil {
		r.fail(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// finished returns how many files were left out because they are finished.
func (r *batchManifest) finished() int {
	if r == nil {
		return 0
	}
	return int(r.m.Stats().Finished)
}
