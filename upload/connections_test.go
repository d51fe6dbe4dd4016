package upload

import (
	"context"
	"testing"
)

// A file gets a connection at once, even if others have all that there are. The next free
// one goes to the file that has the fewest.
func TestConnectionsAreShared(t *testing.T) {
	t.Parallel()
	c := &connections{fixed: 3}
	first := c.enter()
	var lanes []*lane
	for range 3 {
		lanes = append(lanes, first.acquire(t.Context()))
	}
	more := make(chan *lane)
	go func() { more <- first.acquire(t.Context()) }()
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if l := first.acquire(done); l != nil {
		t.Error("a fourth connection")
	}
	second := c.enter()
	own := second.acquire(t.Context()) // or the test hangs
	if second.using() != 1 || first.using() != 3 {
		t.Errorf("%d and %d connections", first.using(), second.using())
	}
	first.release(lanes[0], 0)
	select {
	case <-more:
		t.Error("a connection beyond the level")
	default:
	}
	first.release(lanes[1], 0)
	l := <-more
	own.moved.Add(1)
	second.release(own, 0)
	second.leave()
	for _, l := range []*lane{lanes[2], l} {
		first.release(l, 0)
	}
	if first.using() != 0 || len(first.pace) != 4 {
		t.Errorf("%d connections, %d at most", first.using(), len(first.pace)-1)
	}
	first.leave()
	if len(c.shares) != 0 || len(c.lanes) != 0 {
		t.Errorf("%d files, %d connections are left", len(c.shares), len(c.lanes))
	}
}
