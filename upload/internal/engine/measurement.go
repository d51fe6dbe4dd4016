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
	began time.Time // the first byte; zero before
	moved int64
	done  bool
	err   error
}

// next is called before each read of object data.
func (m *measurement) next() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.done:
	case m.began.IsZero():
		m.began = time.Now()
	default:
		m.done, m.err = m.measure(m.moved, time.Since(m.began))
		m.done = m.done || m.err != nil
	}
	return m.err
}

// add counts n bytes that were read.
func (m *measurement) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moved += int64(n)
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
