package outbox_test

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/upload/outbox"
)

// TestJobs checks that the number of files at a time grows while that raises the throughput, falls if the service
// refuses requests, and stays if it is fixed.
func TestJobs(t *testing.T) {
	refused := faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Times: 600, Do: faults.Action{Effect: faults.EffectStatus, Status: http.StatusServiceUnavailable}}
	for _, tt := range []struct {
		name   string
		size   int64
		files  int
		faults []faults.Fault
		jobs   int
		limit  [2]int // of the limiter
	}{
		{"small", 10, 1000, nil, 0, [2]int{64, 1024}},
		{"refused", 10, 500, []faults.Fault{refused}, 0, [2]int{1, 16}},
		{"fixed", 10, 500, nil, 40, [2]int{32, 32}},
		{"large", 8<<20 + 1, 16, nil, 0, [2]int{6, 64}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakegcs.Options{Latency: 100 * time.Millisecond, Rate: 256 << 10, Discard: true, Faults: tt.faults}, func(w *world) {
				for i := range tt.files {
					name := fmt.Sprintf("f%04d", i)
					w.write(name, nil)
					require.NoError(w.t, os.Truncate(w.path(name), tt.size))
				}
				small, large := &backoff.Limiter{}, &backoff.Limiter{First: 4, Max: 64}
				limiter := small
				if tt.size > 8<<20 {
					limiter = large
				}
				least, most, busy := limiter.Limit(), limiter.Limit(), 0
				opts := outbox.Limited(outbox.Options{Settle: -1, Jobs: tt.jobs}, small, large)
				w.during(opts, func(box *outbox.Outbox) {
					w.until("empty", func() bool {
						s := box.Status()
						least, busy = min(least, limiter.Limit()), max(busy, s.Uploading)
						if tt.size == 10 || s.Uploaded.Files == 0 { // large files count while they are sent
							most = max(most, limiter.Limit())
						}
						return s.Backlog.Files == 0 && !s.Scanned.IsZero() || tt.faults != nil && least <= tt.limit[1]
					})
				})
				switch {
				case tt.faults != nil && least > tt.limit[1], tt.faults == nil && (most < tt.limit[0] || most > tt.limit[1]):
					w.t.Errorf("limits of %d to %d, want %d", least, most, tt.limit)
				case tt.jobs > 0 && busy != tt.jobs, busy > most && tt.jobs == 0 && tt.size == 10:
					w.t.Errorf("%d files at a time, with a limit of %d", busy, most)
				}
				if n := small.InFlight() + large.InFlight(); n != 0 {
					w.t.Errorf("%d files are in flight at the end", n)
				}
			})
		})
	}
}
