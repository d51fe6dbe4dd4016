package engine_test

import (
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/session"
	"gcsup/upload/internal/engine"
)

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
				p, moved, early := &place{}, int64(0), false
				w.uplink.Place = p
				x := engine.NewRequester(w.uplink, tt.part, engine.NewPosition(tt.size)).To(spec)
				r := engine.NewRun(engine.NewTransfer(x, file(data(tt.size)), engine.Unrecorded{}, engine.TransferOptions{Moved: func(n int64) {
					moved += n
					_, sent, arrived, committed := x.Pos.Load()
					if n <= 0 || arrived > sent || moved > sent || arrived < committed {
						t.Errorf("moved %d more: %d arrived, %d sent", n, arrived, sent)
					}
				}}), nil, session.State{Size: tt.size})
				time.AfterFunc(time.Duration(tt.size-mib)*time.Second/time.Duration(tt.rate), func() {
					_, _, arrived, committed := x.Pos.Load()
					if early = !w.uplink.Budget.Progress().IsZero(); committed > 0 || arrived < tt.size-3*mib {
						t.Errorf("%d bytes arrived, %d committed shortly before the end", arrived, committed)
					}
				})
				if _, err := r.Drive(w.t.Context()); err != nil {
					t.Fatal(err)
				}
				if moved != tt.size || int64(p.sent) != tt.size || w.uplink.Tally.Sent.Load() != tt.size || w.flowing == 0 || early != tt.progress {
					t.Errorf("moved %d, sent %d and %d of %d; progress before the reply: %v", moved, p.sent, w.uplink.Tally.Sent.Load(), tt.size, early)
				}
			})
		})
	}
}
