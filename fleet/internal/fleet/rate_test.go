package fleet_test

import (
	"context"
	"testing"
	"time"

	"gcsup/internal/require"
)

// TestFleetRate checks that a limit of the fleet holds for all workers together.
func TestFleetRate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	q := w.queue()
	const limit = 4 << 20
	require.NoError(t, q.SetRate(t.Context(), limit))
	require.NoError(t, q.SetDrain(t.Context(), true))
	w.fill("%02d", 12, ownTask)
	w.submit(q)
	// The workers read each other's conditions before they begin.
	go func() {
		for ready := 0; ready < 4 && t.Context().Err() == nil; pause(t.Context(), 100*time.Millisecond) {
			s, err := q.Status(t.Context())
			if err != nil {
				return
			}
			ready = 0
			for _, worker := range s.Workers {
				if worker.RateLimit == limit/4 {
					ready++
				}
			}
		}
		_ = q.SetDrain(t.Context(), false)
	}()
	took := w.measure(4)
	t.Logf("16.5 MiB took %v with a limit of 4 MiB/s", took)
	if took < 3*time.Second {
		t.Errorf("16.5 MiB took %v with a limit of 4 MiB/s for the fleet", took)
	}
	w.check()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
