package state

import (
	"fmt"
	"sync"
	"testing"
)

// TestIDMutexIsPerID checks that an ID has at most one holder, that two IDs are
// independent, and that no mutex is left.
func TestIDMutexIsPerID(t *testing.T) {
	var m idMutex
	unlock := m.lock("a")
	m.lock("b")() // blocks if both IDs have the same mutex
	unlock()

	var counts [3]int
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			defer m.lock(fmt.Sprint(i % 3))()
			counts[i%3]++ // the race detector detects two holders
		})
	}
	wg.Wait()
	if counts != [3]int{100, 100, 100} || len(m.held) != 0 {
		t.Errorf("counts = %v, %d mutexes left", counts, len(m.held))
	}
}
