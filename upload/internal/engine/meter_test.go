package engine_test

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/upload/internal/engine"
)

// TestMeterOfAPart checks that bytes of a request which the service keeps as a whole count as arrived, unless it is a part of a file.
func TestMeterOfAPart(t *testing.T) {
	t.Parallel()
	for part, want := range []int64{2 * mib, 0} {
		inBubble(t, fakegcs.Options{}, func(w *world) {
			w.part = part
			transfer := w.transfer(spec, file(nil), engine.TransferOptions{})
			m := transfer.Meter(bytes.NewReader(data(4 * mib)))
			for range 3 {
				_, _ = m.Read(make([]byte, mib))
			}
			if _, sent, arrived, _ := transfer.Wire.Pos.Load(); sent != 3*mib || arrived != want {
				t.Errorf("part %d: %d bytes arrived of %d, want %d", part, arrived, sent, want)
			}
			m.Close()
		})
	}
}

// TestMeterLooks checks that a read notes that the bytes of the reads before it arrived, after each MiB and after each
// 50 ms.
func TestMeterLooks(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		transfer := w.transfer(spec, file(nil), engine.TransferOptions{})
		m := transfer.Meter(bytes.NewReader(data(2 * mib)))
		defer m.Close()
		for i, step := range []struct {
			wait    time.Duration
			n, want int64
		}{
			{0, mib - 1, 0}, {0, 1, 0}, {0, 1, mib}, {49 * time.Millisecond, 1, mib}, {time.Millisecond, 1, mib + 2},
		} {
			time.Sleep(step.wait)
			_, _ = m.Read(make([]byte, step.n))
			if _, _, arrived, _ := transfer.Wire.Pos.Load(); arrived != step.want {
				t.Errorf("step %d: %d bytes arrived, want %d", i, arrived, step.want)
			}
		}
	})
}

// TestMeterCountsBytes checks that the bytes of a transfer are counted on their way to the network, that what arrived is not more than
// that, and that many bytes are a success of the service, although no reply has arrived.
func TestMeterCountsBytes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		part     int
		size     int64
		rate     int64 // of the link
		progress bool  // before the first reply
	}{
		{"a file", 0, 20 * mib, 1 << 20, true},
		{"a part", 2, 20 * mib, 1 << 20, true},
		{"less than fills the buffers", 0, 15 * mib, 1 << 20, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakegcs.Options{NoMD5: true, Rate: tt.rate}, func(w *world) {
				p, moved := &place{}, int64(0)
				w.uplink.Place = p
				w.part = tt.part
				var early atomic.Bool
				var r *engine.Run
				r = w.run(spec, file(data(tt.size)), engine.TransferOptions{Moved: func(n int64) {
					moved += n
					_, sent, arrived, committed := r.Wire.Pos.Load()
					if n <= 0 || arrived > sent || moved > sent || arrived < committed {
						t.Errorf("moved %d more: %d arrived, %d sent", n, arrived, sent)
					}
				}})
				time.AfterFunc(time.Duration(tt.size-mib)*time.Second/time.Duration(tt.rate), func() {
					_, _, arrived, committed := r.Wire.Pos.Load()
					if early.Store(!w.uplink.Budget.Progress().IsZero()); committed > 0 || arrived < tt.size-3*mib {
						t.Errorf("%d bytes arrived, %d committed shortly before the end", arrived, committed)
					}
				})
				if _, err := r.Drive(w.t.Context()); err != nil {
					t.Fatal(err)
				}
				if moved != tt.size || int64(p.sent) != tt.size || w.uplink.Tally.Sent.Load() != tt.size || w.flowing.Load() == 0 || early.Load() != tt.progress {
					t.Errorf("moved %d, sent %d and %d of %d; progress before the reply: %v", moved, p.sent, w.uplink.Tally.Sent.Load(), tt.size, early.Load())
				}
			})
		})
	}
}
