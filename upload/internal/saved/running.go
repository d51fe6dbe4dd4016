package saved

import (
	"context"
	"fmt"
	"sync"
)

// Running are the uploads of an Uploader that run and hold the lease of a saved
// upload, by ID. Pause and Cancel interrupt them.
type Running struct{ byID sync.Map } // of *runningUpload

// runningUpload is one of them.
type runningUpload struct {
	interrupt context.CancelCauseFunc // ends the context of the upload
	released  chan struct{}           // closed when the upload has released its lease
}

// add registers an upload that holds its lease, unless interrupt is nil. The caller must call
// remove when the lease is released. By then, another upload with that ID may be registered.
func (r *Running) add(id string, interrupt context.CancelCauseFunc) (remove func()) {
	if interrupt == nil {
		return func() {}
	}
	u := &runningUpload{interrupt, make(chan struct{})}
	r.byID.Store(id, u)
	return func() {
		r.byID.CompareAndDelete(id, u)
		close(u.released)
	}
}

// Stop interrupts the upload with an ID, if there is one, and waits until it has released
// its lease. cause is that of the end of its context.
func (r *Running) Stop(ctx context.Context, id string, cause error) error {
	found, ok := r.byID.Load(id)
	if !ok {
		return nil
	}
	u := found.(*runningUpload)
	u.interrupt(cause)
	select {
	case <-u.released:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %v", ctx.Err(), context.Cause(ctx))
	}
}
