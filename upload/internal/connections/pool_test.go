package connections

import (
	"context"
	"testing"
)

// TestPoolSharesSlots checks that a file gets a slot at once even if other files hold all
// of them, and that the next free one goes to the file that has the fewest.
func TestPoolSharesSlots(t *testing.T) {
	t.Parallel()
	c := &Pool{tuner: tuner{level: 3}}
	first := c.Join()
	var slots []*Slot
	for range 3 {
		slots = append(slots, first.Await(t.Context(), first.Queue(), nil))
	}
	more := make(chan *Slot)
	go func() { more <- first.Await(t.Context(), first.Queue(), nil) }()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if l := first.Await(done, first.Queue(), nil); l != nil {
		t.Error("a fourth slot was granted")
	}
	second := c.Join()
	own := second.Await(t.Context(), second.Queue(), nil) // blocks if the test fails
	if second.Sending() != 1 || first.Sending() != 3 {
		t.Errorf("the files have %d and %d slots, want 3 and 1", first.Sending(), second.Sending())
	}
	first.Release(slots[0], 0)
	select {
	case <-more:
		t.Error("a slot beyond the limit was granted")
	default:
	}
	first.Release(slots[1], 0)
	l := <-more
	own.Moved(1)
	second.Release(own, 0)
	second.Leave()
	for _, l := range []*Slot{slots[2], l} {
		first.Release(l, 0)
	}
	if first.Sending() != 0 || len(first.rates) != 4 {
		t.Errorf("%d slots, %d at most, want 0 and 4", first.Sending(), len(first.rates)-1)
	}
	first.Leave()
	if len(c.shares) != 0 || len(c.slots) != 0 {
		t.Errorf("%d files and %d slots are left", len(c.shares), len(c.slots))
	}
}

// TestPoolFewest checks that a free slot goes to the file that has the fewest, even if another one has waited longer.
func TestPoolFewest(t *testing.T) {
	t.Parallel()
	c := Fixed(4)
	first, second := c.Join(), c.Join()
	var slots []*Slot
	for range 3 {
		slots = append(slots, first.Await(t.Context(), first.Queue(), nil))
	}
	second.Await(t.Context(), second.Queue(), nil)
	longer, shorter := first.Queue(), second.Queue()
	first.Release(slots[0], 0)
	select {
	case <-shorter:
	default:
		t.Error("the file with the fewest slots did not get the free one")
	}
	select {
	case <-longer:
		t.Error("the file with the most slots got one")
	default:
	}
}
