package upload_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// TestManyUploadsToPeerThatClosesIdleConnections checks that a request that needs a
// new connection does not use an idle one of another upload. One file in ten
// waited for a second.
func TestManyUploadsToPeerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const workers, files = 32, 20
	for _, after := range []time.Duration{5 * time.Millisecond, 30 * time.Millisecond} {
		inBubble(t, &fakegcs.Options{Latency: 3 * time.Millisecond}, func(w *world) {
			w.addFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectCloseAfter, For: after}})
			path := w.file(data(1000))
			up := w.uploader(withoutStore)
			var retries atomic.Int64
			var wg sync.WaitGroup
			for i := range workers {
				wg.Go(func() {
					for j := range files {
						time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
						res, err := up.File(w.t.Context(), path, upload.Spec{Bucket: "bkt", Object: fmt.Sprint(i, "-", j)})
						if err != nil {
							t.Error(err)
						}
						retries.Add(int64(res.Retries))
					}
				})
			}
			wg.Wait()
			if n := retries.Load(); n > workers*files/20 {
				t.Errorf("%v: %d of %d files waited", after, n, workers*files)
			}
		})
	}
}

// TestPeerThatClosesIdleConnections checks that an upload succeeds with a peer that
// silently closes each connection a few milliseconds after its reply. In an earlier
// version, every request after a query used the connection of that query, which was
// being closed.
func TestPeerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, after := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond} {
		inBubble(t, nil, func(w *world) {
			content := data(9 * mib)
			w.addFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectCloseAfter, For: after}})
			res, err := w.uploader().File(w.t.Context(), w.file(content), spec)
			if err != nil {
				t.Fatalf("%v: %v\n%s", after, err, w.trace())
			}
			w.wantObject("obj", content)
			if res.Retries != 0 || res.Waited != 0 {
				t.Errorf("%v: %d retries, %v of waiting\n%s", after, res.Retries, res.Waited, w.trace())
			}
		})
	}
}
