package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gcsup/session"
)

// ErrLimits means that a worker may not read a file, or write to a bucket, see WorkerOptions.Roots and Buckets.
var ErrLimits = errors.New("this worker must not upload it")

// kindLimits is the class of ErrLimits of a file.
const kindLimits = "limits"

// ErrRoot means that a directory of WorkerOptions.Roots is missing, empty or cannot be read.
var ErrRoot = errors.New("the files of this worker are not there")

// checkRoots resolves the links of the roots. It returns an error that wraps ErrRoot unless each root is a directory with
// files.
func (w *Worker) checkRoots(ctx context.Context) error {
	resolved := make([]string, len(w.opts.Roots))
	for i, root := range w.opts.Roots {
		var err error
		if resolved[i], err = resolve(ctx, root, min(w.q.AckWait(), rootTimeout)); err != nil {
			return fmt.Errorf("%w: --root %s: %v", ErrRoot, root, err)
		}
	}
	w.roots.Store(&resolved)
	return nil
}

// rootTimeout is how long checkRoots waits for a root, at most.
const rootTimeout = 30 * time.Second

// resolve returns the path of a root without links. It fails if the root has no files, or does not answer for limit, as on a
// server that has died.
func resolve(ctx context.Context, root string, limit time.Duration) (string, error) {
	type answer struct {
		path string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		path, err := filepath.EvalSymlinks(root)
		var f *os.File
		if err == nil {
			f, err = os.Open(path)
		}
		if err == nil {
			_, err = f.Readdirnames(1) // io.EOF: it is empty
			_ = f.Close()
		}
		answers <- answer{path, err}
	}()
	select {
	case a := <-answers:
		return a.path, a.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case <-time.After(limit):
		return "", fmt.Errorf("it has not answered for %v", limit)
	}
}

// limits returns an error for a file that this worker must not read: the file to which the path leads must be in a root. A
// link to it may be anywhere.
func (x *execution) limits(path string) error {
	given := x.w.opts.Roots
	if len(given) == 0 {
		return nil
	}
	defer x.reads.Begin(path)()
	roots, file := *x.w.roots.Load(), path
	if to, err := filepath.EvalSymlinks(path); err == nil {
		file = to
	} else {
		roots = given // the upload reports the error
	}
	if !below(roots, file) {
		return fmt.Errorf("%s: %w: it is in no --root", path, ErrLimits)
	}
	return nil
}

// below reports whether a path is below one of the roots.
func below(roots []string, path string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		rel, err := filepath.Rel(root, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// checkEvery is the time between two checks of a worker whose tasks fail.
const checkEvery = 5 * time.Second

// ownFailure returns why this worker, and not its task, is the reason of failures: its credentials are refused, its
// roots are not there, or it cannot use the state bucket. Otherwise it returns nil.
func (w *Worker) ownFailure(ctx context.Context, failures []outcome) error {
	for _, o := range failures {
		if errors.Is(o.err, session.ErrCredentials) {
			return o.err
		}
	}
	w.mu.Lock()
	check := slices.ContainsFunc(failures, ofWorker) && time.Since(w.checked) >= checkEvery
	if check {
		w.checked = time.Now()
	}
	w.mu.Unlock()
	if !check {
		return nil
	}
	err := w.checkRoots(ctx)
	if err == nil {
		err = w.checkKey(ctx, w.ledger.state)
	}
	if errors.Is(err, session.ErrRetriesExhausted) || ctx.Err() != nil {
		return nil
	}
	return err
}
