package fleet_test

import (
	"context"
	"sync/atomic"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/fleet/internal/fleet"
	"gcsup/internal/require"
)

// TestRedeliveredGroup delivers a group again, of which a worker has sent a part. The finished files are not sent again.
func TestRedeliveredGroup(t *testing.T) {
	t.Parallel()
	const files, sent = 100, 80
	w := newWorld(t, nil)
	w.fill("small-%03d", files, 1000)
	q := w.queue()
	w.submit(q)
	ctx, stop := context.WithCancel(t.Context())
	var inserts atomic.Int32
	w.onRequest.Store(new(func(r fakegcs.Request) {
		if r.Op == faults.OpInsert && r.Bucket == bucket && inserts.Add(1) == sent {
			stop()
		}
	}))
	w.run(ctx, w.worker(q, "a", func(o *fleet.WorkerOptions) { o.UntilEmpty = false }))
	before := inserts.Load()
	require.NoError(t, fleet.Redeliver(t.Context(), w.connect()))
	w.run(t.Context(), w.worker(w.queue(), "b", nil))
	if again := inserts.Load() - before; again > files-sent {
		t.Errorf("%d files were sent by the second worker, want at most %d", again, files-sent)
	}
	w.check()
}
