package engine_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/upload/internal/engine"
)

// TestMeasureSeesTheNetwork checks that a measurement gets the bytes and the time of the network without that of the source, that it restarts
// after a failed request, and that its error ends the run, which can continue without it.
func TestMeasureSeesTheNetwork(t *testing.T) {
	t.Parallel()
	slow := errors.New("one connection is slow")
	for _, tt := range []struct {
		name   string
		until  int64 // the measure ends after so many bytes
		err    error
		faults []faults.Fault
		begun  int
		log    string
	}{
		{"done", q, nil, nil, 1, "start 200 send; put 0-2q 308 2q send; put 2q-4q 308 4q send; finalize 4q-4q+5 200 done"},
		{"done in the second request", 3 * q, nil, nil, 1, "start 200 send; put 0-2q 308 2q send; put 2q-4q 308 4q send; finalize 4q-4q+5 200 done"},
		{"again after a failure", 3 * q, nil, on(faults.OpPut, status(503)), 2,
			"start 200 send; put 0-2q 503 query; wait 1s; query 308 send; put 0-2q 308 2q send; put 2q-4q 308 4q send; finalize 4q-4q+5 200 done"},
		{"not again after it ended", q, nil, on(faults.OpPut, status(503)), 1,
			"start 200 send; put 0-2q 503 query; wait 1s; query 308 send; put 0-2q 308 2q send; put 2q-4q 308 4q send; finalize 4q-4q+5 200 done"},
		{"slow", q, slow, nil, 1, "start 200 send; put lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakegcs.Options{NoMD5: true, Rate: q, Faults: tt.faults}, func(w *world) {
				w.uplink.ChunkSize = 2 * q
				begun, last, calls := 0, time.Duration(0), []int64{}
				r := w.run(spec, file(data(4*q+5)), engine.TransferOptions{Measure: func() engine.Measure {
					begun++
					last, calls = 0, nil
					return func(n int64, took time.Duration) (bool, error) {
						if took < last || n <= 0 {
							t.Errorf("%d bytes took %v, after %v", n, took, last)
						}
						last, calls = took, append(calls, n)
						if n < tt.until {
							return false, nil
						}
						return true, tt.err
					}
				}})
				_, err := r.Drive(w.t.Context())
				w.want(err, tt.err, tt.log)
				n := calls[len(calls)-1]
				// The buffers of the network have 128 KiB, and the measure ends at the read after its last bytes.
				if rate := float64(n) / last.Seconds(); begun != tt.begun || !slices.IsSorted(calls) || n < tt.until || n > tt.until+q || rate < 0.7*float64(q) || rate > 1.6*float64(q) {
					t.Errorf("begun %d times; %d bytes took %v", begun, n, last)
				}
				if err != nil {
					if _, err := r.Drive(w.t.Context()); err != slow {
						t.Errorf("again: %v", err)
					}
					r.Unmeasured()
					if _, err := r.Drive(w.t.Context()); err != nil {
						t.Errorf("without the measure: %v\n%v", err, w)
					}
				}
				w.wantObject(data(4*q + 5))
			})
		})
	}
}
