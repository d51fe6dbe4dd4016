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

// TestManyUploadsWithoutABackend checks that the circuit breaker opens if a load balancer without a backend answers all data and
// queries, although sessions still open. The replies may be those of a service that has lost the sessions. Other ends of an outage are
// in package engine.
func TestManyUploadsWithoutABackend(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, code := range []int{503, 404} {
		inBubble(t, nil, func(w *world) {
			const n = 32
			do := faults.Action{Effect: faults.EffectStatus, Status: code, Body: "<html>no backend</html>"}
			w.addFaults(
				faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: -1, Do: do},
				faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Times: -1, Do: do})
			ctx, cancel := context.WithTimeout(w.t.Context(), 32*time.Second)
			defer cancel()
			up, path := w.uploader(largeChunks, withoutStore), w.file(data(large))
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() { _, _ = up.File(ctx, path, upload.Spec{Bucket: "bkt", Object: fmt.Sprint(i)}) })
			}
			all.Wait()
			// Without the breaker there are 160 requests.
			if ops := w.srv.Stats().Ops; ops[faults.OpPut]+ops[faults.OpQuery] > n+5 {
				t.Errorf("%d: %d requests with data and %d queries for %d uploads", code, ops[faults.OpPut], ops[faults.OpQuery], n)
			}
		})
	}
}
