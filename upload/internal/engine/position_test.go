package engine_test

import (
	"testing"

	"gcsup/upload/internal/engine"
)

// TestPosition checks that an event shows at least the committed bytes as arrived, and not more than was sent.
func TestPosition(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ sent, arrived, committed, want int64 }{{5, 3, 1, 3}, {5, 9, 1, 5}, {5, 3, 4, 4}, {2, 3, 4, 4}, {0, 0, 0, 0}} {
		p := engine.NewPosition(10)
		p.Sent.Store(tt.sent)
		p.Arrived.Store(tt.arrived)
		p.Committed.Store(tt.committed)
		if size, sent, arrived, committed := p.Load(); size != 10 || sent != tt.sent || arrived != tt.want || committed != tt.committed {
			t.Errorf("%+v: %d, %d, %d of %d", tt, sent, arrived, committed, size)
		}
	}
}
