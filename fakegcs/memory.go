package fakegcs

import (
	"runtime/debug"
	"sync"
)

// memory returns the memory of deleted objects to the system. Without it, the garbage
// collector would not run in an idle server, because it allocates nothing.
type memory struct {
	mu    sync.Mutex
	bytes int64 // dropped since the last collection began
	runs  bool
	ended bool
	busy  sync.WaitGroup
}

// worthCollecting is the number of freed bytes after which a garbage collection runs.
const worthCollecting = 64 << 20

// freed records that n bytes were released.
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

// close waits for a running collection and prevents others.
func (m *memory) close() {
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.busy.Wait()
}

// collect repeats garbage collections until less than worthCollecting was freed
// during the last one.
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
