package upload

import (
	"context"
	"testing"
)

// TestConnPoolSharesSlots checks that a file gets a slot at once even if other files hold all
// of them, and that the next free one goes to the file that has the fewest.
func TestConnPoolSharesSlots(t *testing.T) {
	t.Parallel()
	c := &connPool{tuner: tuner{level: 3}}
	first := c.join()
	var slots []*slot
	for range 3 {
		slots = append(slots, first.acquire(t.Context()))
	}
	more := make(chan *slot)
	go func() { more <- first.acquire(t.Context()) }()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if l := first.acquire(done); l != nil {
		t.Error("a fourth slot was granted")
	}
	second := c.join()
	own := second.acquire(t.Context()) // blocks if the test fails
	if second.slots() != 1 || first.slots() != 3 {
		t.Errorf("the files have %d and %d slots, want 3 and 1", first.slots(), second.slots())
	}
	first.release(slots[0], 0)
	select {
	case <-more:
		t.Error("a slot beyond the limit was granted")
	default:
	}
	first.release(slots[1], 0)
	l := <-more
	own.moved.Add(1)
	second.release(own, 0)
	second.leave()
	for _, l := range []*slot{slots[2], l} {
		first.release(l, 0)
	}
	if first.slots() != 0 || len(first.rates) != 4 {
		t.Errorf("%d slots, %d at most, want 0 and 4", first.slots(), len(first.rates)-1)
	}
	first.leave()
	if len(c.shares) != 0 || len(c.slots) != 0 {
		t.Errorf("%d files and %d slots are left", len(c.shares), len(c.slots))
	}
}
