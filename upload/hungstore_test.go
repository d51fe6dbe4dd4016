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

// TestStoreThatHangs checks that a store that hangs does not delay a canceled
// upload indefinitely.
func TestStoreThatHangs(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, &fakegcs.Options{Rate: 1 << 20}, func(w *world) {
		ctx, cancel := context.WithCancel(w.t.Context())
		time.AfterFunc(3*time.Second, cancel)
		var saves atomic.Int64 // the first is answered
		up := w.uploader(func(o *upload.Options) {
			o.Store = hook(w.store, func(ctx context.Context) error {
				if saves.Add(1) < 2 {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}, "Save")
		})
		start := time.Now()
		if _, err := up.File(ctx, w.file(data(12*mib)), spec); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v", err)
		}
		if took := time.Since(start); took > 6*time.Second {
			t.Errorf("returned %v after it was canceled", took-3*time.Second)
		}
		time.Sleep(20 * time.Second) // until the save has timed out
	})
}

// TestAbandonedUploadKeepsItsLock checks that an abandoned upload keeps its
// lock until its store answers.
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
		path := w.file(content)
		if _, err := up.File(ctx, path, spec); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		if _, err := w.uploader().File(w.t.Context(), path, spec); !errors.Is(err, state.ErrInUse) {
			t.Error(err)
		}
		close(hold)
		time.Sleep(20 * time.Second)
		if res, err := w.uploader().File(w.t.Context(), path, spec); err != nil || res.ResumedFrom == 0 {
			t.Errorf("after its store answered: %+v, %v", res, err)
		}
		w.wantObject("obj", content)
		w.wantSaved(0)
	})
}
