package upload

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"gcsup/session"
)

// maxDenied is the number of denied uploads after which a bucket without a successful
// upload is no longer tried. It is more than 1, because a single object may have its
// own permissions.
const maxDenied = 3

// fates decides from the failures of a batch which files must not be started. The
// zero value with a budget is ready to use.
type fates struct {
	budget *budget // of the batch

	mu       sync.Mutex
	answered time.Time // when the service last accepted or refused an upload
	all      error     // the error of all remaining files; nil while the service counts as reachable
	since    time.Time // when all was set
	buckets  map[string]*fate
}

// fate is the state of one bucket.
type fate struct {
	end       error // the error of all remaining files of the bucket
	succeeded bool
	denied    int // objects for which the service denied permission
}

// end returns the error of a file that must not be tried, or nil.
func (f *fates) end(bucket string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all != nil {
		if !f.budget.progress().After(f.since) {
			return f.all
		}
		f.all = nil // a large file continues
	}
	if b := f.buckets[bucket]; b != nil {
		return b.end
	}
	return nil
}

// learn records the outcome of an upload. r is the retrier of that upload.
func (f *fates) learn(result *Result, err error, r *retrier) {
	f.mu.Lock()
	defer f.mu.Unlock()
	failed, isReply := errors.AsType[*session.Error](err)
	b := f.bucket(result.Spec.Bucket)
	switch {
	case err == nil:
		if result.Skipped == SkipNothing && !result.Planned {
			f.answered, f.all = time.Now(), nil
			b.succeeded = true
			if errors.Is(b.end, session.ErrPermission) {
				b.end = nil
			}
		}
		return
	case !isReply:
		return
	case errors.Is(err, session.ErrRetriesExhausted):
		if !failed.Alone() && f.answered.Before(r.failing) && f.budget.progress().Before(r.failing) {
			f.since = time.Now()
			f.all = fmt.Errorf("%w: no upload has succeeded for %v: %w", ErrNotTried, time.Since(r.failing).Round(time.Second), session.ErrRetriesExhausted)
		}
		return
	case errors.Is(err, session.ErrNotFound):
		b.end = f.notTried(result, session.ErrNotFound)
	case errors.Is(err, session.ErrCredentials):
		b.end = f.notTried(result, session.ErrCredentials)
	case errors.Is(err, session.ErrPermission) && !strings.Contains(failed.Message, "storage.objects.delete"):
		if b.denied++; b.denied >= maxDenied && !b.succeeded {
			b.end = f.notTried(result, session.ErrPermission)
		}
	}
	if failed.FromService {
		f.answered = time.Now()
	}
}

func (f *fates) notTried(r *Result, why error) error {
	return fmt.Errorf("%w: bucket %s: %w", ErrNotTried, r.Spec.Bucket, why)
}

// bucket returns the fate of a bucket, which the caller may change. The caller holds
// f.mu.
func (f *fates) bucket(name string) *fate {
	b := f.buckets[name]
	if b == nil {
		if f.buckets == nil {
			f.buckets = map[string]*fate{}
		}
		b = new(fate)
		f.buckets[name] = b
	}
	return b
}
