package stream

// Unexported names for the tests of package stream_test.

// Used returns the bytes in use, and the number of streams.
func (m *Memory) Used() (bytes int64, streams int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used, m.streams
}
