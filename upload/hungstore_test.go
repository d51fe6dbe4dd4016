package upload_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/session/state"
	"gcsup/upload"
)

// TestAbandonedUploadKeepsItsLock checks that a store that hangs delays a canceled upload only for seconds, and that
// the upload keeps its lock until the store answers.
func TestAbandonedUploadKeepsItsLock(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, &fakegcs.Options{Rate: 1 << 20}, func(w *world) {
		ctx, cancel := context.WithCancel(w.t.Context())
		time.AfterFunc(3*time.Second, cancel)
		hold := make(chan struct{})
		var saves atomic.Int64
		up := w.uploader(func(o *upload.Options) {
			o.Store = hook(w.store, func(context.Context) error {
				if saves.Add(1) >= 2 {
					<-hold
				}
				return nil
			}, "Save")
		})
		content := data(12 * mib)
		path, start := w.file(content), time.Now()
		if _, err := up.File(ctx, path, spec); !errors.Is(err, context.Canceled) || time.Since(start) > 6*time.Second {
			t.Errorf("canceled: %v after %v", err, time.Since(start))
		}
		w.fails(state.ErrInUse)(w.uploader().File(w.t.Context(), path, spec))
		close(hold)
		time.Sleep(20 * time.Second)
		if res, err := w.uploader().File(w.t.Context(), path, spec); err != nil || res.ResumedFrom == 0 {
			t.Errorf("after its store answered: %+v, %v", res, err)
		}
		w.wantObject("obj", content)
		w.wantSaved(0)
	})
}
