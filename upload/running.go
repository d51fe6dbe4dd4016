package upload

import (
	"context"
	"fmt"
	"sync"
)

// runningUploads are the uploads of an Uploader that run and hold the lease of a saved
// upload, by ID. Pause and Cancel interrupt them.
type runningUploads struct {
	mu   sync.Mutex
	byID map[string]*runningUpload
}

// runningUpload is one of them.
type runningUpload struct {
	interrupt context.CancelCauseFunc // ends the context of the upload
	released  chan struct{}           // closed when the upload has released its lease
}

// add registers an upload that holds its lease, unless interrupt is nil. The caller must call
// remove when the lease is released. By then, another upload with that ID may be registered.
func (r *runningUploads) add(id string, interrupt context.CancelCauseFunc) (remove func()) {
	if interrupt == nil {
		return func() {}
	}
	u := &runningUpload{interrupt, make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = map[string]*runningUpload{}
	}
	r.byID[id] = u
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.byID[id] == u {
			delete(r.byID, id)
		}
		close(u.released)
	}
}

// stop interrupts the upload with an ID, if there is one, and waits until it has released
// its lease. cause is that of the end of its context.
func (r *runningUploads) stop(ctx context.Context, id string, cause error) error {
	r.mu.Lock()
	u := r.byID[id]
	r.mu.Unlock()
	if u == nil {
		return nil
	}
	u.interrupt(cause)
	select {
	case <-u.released:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %v", ctx.Err(), context.Cause(ctx))
	}
}
