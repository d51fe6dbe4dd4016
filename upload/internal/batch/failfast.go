package batch

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"gcsup/internal/bucket"
	"gcsup/internal/decide"
	"gcsup/session"
)

// maxDenied is the number of denied uploads after which a bucket without a successful
// upload is no longer tried. It is more than 1, because a single object may have its
// own permissions.
const maxDenied = 3

// FailFast decides from the outcomes of a batch which of its other files are not tried.
type FailFast struct {
	progress func() time.Time

	mu       sync.Mutex
	answered time.Time // when the service last accepted or refused an upload
	all      error     // why no file is tried; nil while the service counts as reachable
	since    time.Time // when all was set
	buckets  map[string]*bucketState
}

// bucketState is the state of one bucket.
type bucketState struct {
	end       error // why no file of the bucket is tried
	succeeded bool
	denied    int // objects for which the service denied permission
}

// NewFailFast returns a FailFast. progress returns when an upload last progressed.
func NewFailFast(progress func() time.Time) *FailFast {
	return &FailFast{progress: progress, buckets: map[string]*bucketState{}}
}

// Err returns why a file must not be tried, or nil.
func (b *FailFast) Err(bucket string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all != nil {
		if !b.progress().After(b.since) {
			return b.all
		}
		b.all = nil // a large file continues
	}
	return b.bucket(bucket).end
}

// Succeeded records that an object was made.
func (b *FailFast) Succeeded(bucket string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answered, b.all = time.Now(), nil
	to := b.bucket(bucket)
	to.succeeded = true
	if errors.Is(to.end, session.ErrPermission) {
		to.end = nil
	}
}

// Failed records the failure of an upload.
func (b *FailFast) Failed(name string, err error) {
	failed, isReply := errors.AsType[*session.Error](err)
	if !isReply {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	to := b.bucket(name)
	end := func(why error) { to.end = fmt.Errorf("bucket %s: %w", name, why) }
	switch {
	case errors.Is(err, session.ErrRetriesExhausted):
		if !decide.Alone(failed) && b.answered.Before(failed.Since) && b.progress().Before(failed.Since) {
			b.since = time.Now()
			b.all = fmt.Errorf("no upload has succeeded for %v: %w", time.Since(failed.Since).Round(time.Second), session.ErrRetriesExhausted)
		}
		return
	case errors.Is(err, session.ErrNotFound):
		end(session.ErrNotFound)
	case errors.Is(err, session.ErrCredentials):
		end(session.ErrCredentials)
	case errors.Is(err, session.ErrPermission) && decide.Permission(failed) != bucket.PermissionDelete:
		if to.denied++; to.denied >= maxDenied && !to.succeeded {
			end(session.ErrPermission)
		}
	}
	if failed.FromService {
		b.answered = time.Now()
	}
}

// bucket returns the state of a bucket. The caller holds b.mu.
func (b *FailFast) bucket(name string) *bucketState {
	state := b.buckets[name]
	if state == nil {
		state = new(bucketState)
		b.buckets[name] = state
	}
	return state
}
