package upload_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// checkAtRisk checks the bytes at risk in all events, if a number of bytes was committed before. It returns how many are
// committed.
func (w *world) checkAtRisk(before int64) (committed int64) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Parts == nil {
			continue
		}
		committed = e.Committed
		more := max(committed-before, 0)
		if atRisk := e.Sent - e.Committed; atRisk > max(2*more, min(16*mib+more, 64*mib)) {
			w.t.Errorf("%d MiB are at risk after %d were committed", atRisk/mib, more/mib)
		}
		if e.Arrived != e.Committed {
			w.t.Errorf("%d bytes have arrived, %d are committed: a part that is not complete is no progress", e.Arrived, e.Committed)
		}
	}
	return committed
}

// An upload that is interrupted while the session of its first bytes is being canceled ends at once, and leaves no multipart upload.
func TestInterruptedWhileDivided(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, distant(mib), func(w *world) {
		path := w.file(random(160 * mib))
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpCancel}, Do: faults.Action{Effect: faults.EffectStall, For: time.Minute}})
		ctx, cancel := context.WithCancel(w.t.Context())
		defer cancel()
		var since time.Time
		up := w.uploader(auto, func(o *upload.Options) {
			o.Parallel = o.Parallel.Joined(upload.ByMultipart)
			next := o.Observer
			o.Observer = func(e upload.Event) {
				next(e)
				if e.Kind == upload.Divided {
					time.AfterFunc(500*time.Millisecond, func() { since = time.Now(); cancel() })
				}
			}
		})
		_, err := up.File(ctx, path, spec)
		if took := time.Since(since); !errors.Is(err, context.Canceled) || took > 1500*time.Millisecond {
			t.Errorf("%v, %v after the interruption", err, took)
		}
		time.Sleep(time.Minute)
		w.wantNoLeftovers()
	})
}

// Uploaders can share a bound.
func TestAtRiskShared(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, shared := range []bool{false, true} {
		inBubble(t, &fakegcs.Options{Rate: mib}, func(w *world) {
			var bound upload.AtRisk
			f := w.countFlights()
			uploader := func() *upload.Uploader {
				return w.uploader(withoutStore, func(o *upload.Options) {
					if shared {
						o.AtRisk = &bound
					}
				})
			}
			done, jobs := make(chan error), w.jobs(4, 8*mib)
			for i := range 2 {
				up := uploader()
				go func() {
					var failed error
					for _, err := range up.Files(w.t.Context(), slices.Values(jobs[2*i:2*i+2]), nil) {
						failed = errors.Join(failed, err)
					}
					done <- failed
				}()
			}
			for range 2 {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			if n := f.most.Load(); shared && n > 3 || !shared && n != 4 { // 16 MiB, and after the first commit 24 MiB
				t.Errorf("shared %t: %d files at a time", shared, n)
			}
		})
	}
}
