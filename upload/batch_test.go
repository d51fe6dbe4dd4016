package upload

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
)

// TestBatchAtTheBreaker checks that the circuit breaker blocks the uploads of a batch as long as it
// would hold one file of their total size, and other uploads as long as their own
// size requires.
func TestBatchAtTheBreaker(t *testing.T) {
	t.Parallel()
	const jobs, size = 64, 1 << 20
	path, _ := sourceFile(t, size)
	down := faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}
	inBubble(t, &fakegcs.Options{Faults: []faults.Fault{down}}, func(t *testing.T, srv *fakegcs.Server, u *Uploader) {
		u.opts.ChunkSize = 0 // one request each
		shared := u.newBudget()
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 2 * jobs {
			b, first, last := shared, 392*time.Second, 420*time.Second // 10 retries wait for 196 s
			if i%2 == 0 {
				b, first, last = u.newBudget(), 73*time.Second, 80*time.Second
			}
			wg.Go(func() {
				c := newCall(t.Context(), u, Spec{Bucket: "bkt", Object: fmt.Sprint(i)}, b)
				_, err := c.finish(t.Context(), uploadFile(t.Context(), c, path))
				if took := time.Since(start); !errors.Is(err, session.ErrRetriesExhausted) || took < first || took > last {
					t.Errorf("job %d ended after %v, want %v to %v: %v", i, took, first, last, err)
				}
			})
		}
		wg.Wait()
		if n := srv.Stats().Ops[faults.OpInsert]; n > 2*jobs+5+(420-32)/32 {
			t.Errorf("%d requests for %d jobs", n, 2*jobs)
		}
	})
}
