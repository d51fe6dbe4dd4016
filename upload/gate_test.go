package upload_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// briefly runs n uploads with sessions for 32 s. apart is the time between their
// starts.
func (w *world) briefly(n int, apart time.Duration) {
	w.t.Helper()
	path := w.file(data(large))
	up := w.uploader(largeChunks, withoutStore)
	ctx, cancel := context.WithTimeout(w.t.Context(), 32*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * apart)
			_, _ = up.File(ctx, path, upload.Spec{Bucket: "bkt", Object: fmt.Sprint(i)})
		})
	}
	wg.Wait()
}

// TestManyUploadsWhoseDataIsRefused checks that neither a session that opens nor a
// status query that is answered opens the gate, or keeps it open, while data is
// refused. In an earlier version, 32 uploads made 9 requests each in 32 s.
func TestManyUploadsWhoseDataIsRefused(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, apart := range []time.Duration{0, 20 * time.Millisecond} {
		t.Run(apart.String(), func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				const n = 32
				w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}})
				w.briefly(n, apart)
				ops := w.srv.Stats().Ops
				if data := ops[faults.OpPut]; data > n+5 || ops[faults.OpQuery] > 5 {
					t.Errorf("%d requests with data and %d queries for %d uploads", data, ops[faults.OpQuery], n)
				}
			})
		})
	}
}

// TestStranger404AtTheGate checks that the 404s of a load balancer without a
// backend close the gate.
func TestStranger404AtTheGate(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, code := range []int{503, 404} {
		inBubble(t, nil, func(w *world) {
			const n = 32
			html := faults.Action{Effect: faults.EffectStatus, Status: code, Body: "<html>no backend</html>"}
			w.addFaults(
				faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: -1, Do: html},
				faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Times: -1, Do: html})
			w.briefly(n, 0)
			// Without the gate there are 160 requests.
			ops := w.srv.Stats().Ops
			if total := ops[faults.OpPut] + ops[faults.OpQuery]; total > n+5 {
				t.Errorf("%d: %d requests after the start for %d uploads in 32 s", code, total, n)
			}
		})
	}
}
