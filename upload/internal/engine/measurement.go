package engine

import (
	"sync"
	"time"
)

// measurement is how fast the first bytes of a transfer are handed to the network. The requests
// of the transfer share it. A nil *measurement measures nothing.
type measurement struct {
	begin func() Measure

	mu      sync.Mutex
	over    bool          // the rate is known, or the request has to end
	measure Measure       // of this request and those before it that succeeded; nil before the first byte
	since   time.Time     // when the network's turn began
	took    time.Duration // the network's turns; the source is read in between
	moved   int64
	err     error
}

// newMeasurement returns nil if begin is nil.
func newMeasurement(begin func() Measure) *measurement {
	if begin == nil {
		return nil
	}
	return &measurement{begin: begin}
}

// next is called before each read of object data.
func (m *measurement) next() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over || m.measure == nil {
		return m.err
	}
	m.took += time.Since(m.since)
	done, err := m.measure(m.moved, m.took)
	m.err, m.over = err, done || err != nil
	return err
}

// add counts n bytes that were read.
func (m *measurement) add(n int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return
	}
	if m.measure == nil {
		m.measure = m.begin() // only now, so that a pause before the first byte does not count
	}
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
	m.measure, m.took, m.moved = nil, 0, 0
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

// Measure is called while the first bytes are sent: n of them were handed to the network in the
// time took. done ends the measurement, and an error the upload.
type Measure func(n int64, took time.Duration) (done bool, err error)
