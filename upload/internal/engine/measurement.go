package engine

import (
	"sync"
	"time"
)

// measurement is how fast the first bytes of a transfer are handed to the network. The requests
// of the transfer share it.
type measurement struct {
	measure Measure

	mu    sync.Mutex
	since time.Time     // when the network's turn began; zero before the first byte
	took  time.Duration // the network's turns; the source is read in between
	moved int64
	done  bool
	err   error
}

// next is called before each read of object data.
func (m *measurement) next() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done || m.since.IsZero() {
		return m.err
	}
	m.took += time.Since(m.since)
	m.done, m.err = m.measure(m.moved, m.took)
	m.done = m.done || m.err != nil
	return m.err
}

// add counts n bytes that were read.
func (m *measurement) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moved += int64(n)
	m.since = time.Now()
}

// again restarts the measurement after a failed request. The waits after the failure must not count.
func (m *measurement) again() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since, m.took, m.moved = time.Time{}, 0, 0
}

// failed returns the error of the measurement, or nil.
func (m *measurement) failed() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}
