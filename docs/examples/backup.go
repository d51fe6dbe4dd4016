package examples

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gcsup/upload"
	"gcsup/upload/tree"
)

// Backup uploads the files of a directory to objects whose names begin with the
// prefix spec.Object. It skips files whose objects are identical, and what is not a
// file, such as a dangling link or a socket. It continues after a file that fails.
// progress is called with the number of bytes sent so far, repeats
// included, one call at a time.
func Backup(ctx context.Context, up *upload.Uploader, dir string, spec upload.Spec, progress func(sent int64)) (uploaded, skipped int, err error) {
	files, err := tree.New([]tree.Source{{Path: dir}}, spec, &tree.Options{
		Sorted:  true, // the order of the listing below
		Exclude: []string{"*.tmp"},
	})
	if err != nil {
		return 0, 0, err
	}
	totals := &totals{report: progress}
	up, err = up.With(upload.CallOptions{Observer: totals.observe})
	if err != nil {
		return 0, 0, err
	}
	opts := &upload.BatchOptions{
		Skip:    upload.SkipSameTime,
		Listing: &upload.Listing{Bucket: spec.Bucket, Prefix: spec.Object + "/"},
		Sizes:   files.Sizes(ctx),
	}
	var failed []error
	for result, err := range up.Files(ctx, files.Walk(ctx), opts) {
		_, notFile := errors.AsType[*tree.EntryError](err) // the next backup will meet it again
		switch {
		case notFile:
			skipped++
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", result.Path, err))
		case result.Skipped != upload.SkipNothing:
			skipped++
		default:
			uploaded++
		}
	}
	return uploaded, skipped, errors.Join(failed...)
}

// totals adds up the progress of uploads that run at the same time. The events of one
// upload arrive one at a time, but those of several uploads concurrently.
type totals struct {
	mu     sync.Mutex
	sent   int64
	report func(sent int64)
}

func (t *totals) observe(e upload.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.SentDelta > 0 {
		t.sent += e.SentDelta
		t.report(t.sent)
	}
}
