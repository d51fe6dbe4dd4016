package fakegcs

import (
	"runtime/debug"
	"sync"
)

// memory returns the memory of deleted objects to the system. An idle server allocates
// nothing, so that the garbage collector would not run, and a large object would stay
// resident.
type memory struct {
	mu    sync.Mutex
	bytes int64 // dropped since the last collection began
	runs  bool
	ended bool
	busy  sync.WaitGroup
}

// worthCollecting is how many dropped bytes are worth a garbage collection.
const worthCollecting = 64 << 20

// freed reports that n bytes are no longer referred to.
func (m *memory) freed(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes += n
	if m.runs || m.ended || m.bytes < worthCollecting {
		return
	}
	m.runs = true
	m.busy.Go(m.collect)
}

// close waits for a running collection, and lets no other start.
func (m *memory) close() {
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.busy.Wait()
}

// collect collects garbage until less than worthCollecting was freed meanwhile.
func (m *memory) collect() {
	for {
		m.mu.Lock()
		if m.bytes < worthCollecting {
			m.runs = false
			m.mu.Unlock()
			return
		}
		m.bytes = 0
		m.mu.Unlock()
		debug.FreeOSMemory()
	}
}
