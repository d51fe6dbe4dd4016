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
// status query that is answered closes the breaker, or keeps it closed, while data is
// refused. In an earlier version, 32 uploads made 9 requests each in 32 s. Nor do
// the 503s and 404s of a load balancer without a backend, also to queries.
func TestManyUploadsWhoseDataIsRefused(t *testing.T) {
	t.Parallel()
	skipShort(t)
	status := func(code int, body string) faults.Action {
		return faults.Action{Effect: faults.EffectStatus, Status: code, Body: body}
	}
	for _, tt := range []struct {
		apart   time.Duration
		do      faults.Action
		queries bool // are refused, too
	}{
		{0, status(503, ""), false},
		{20 * time.Millisecond, status(503, ""), false},
		{0, status(503, "<html>no backend</html>"), true},
		{0, status(404, "<html>no backend</html>"), true},
	} {
		inBubble(t, nil, func(w *world) {
			const n = 32
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: -1, Do: tt.do})
			if tt.queries {
				w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Times: -1, Do: tt.do})
			}
			w.briefly(n, tt.apart)
			// Without the breaker there are 160 requests.
			ops := w.srv.Stats().Ops
			if data, queries := ops[faults.OpPut], ops[faults.OpQuery]; queries > 5 && !tt.queries || data > n+5 || tt.queries && data+queries > n+5 {
				t.Errorf("%+v: %d requests with data and %d queries for %d uploads", tt, data, queries, n)
			}
		})
	}
}
