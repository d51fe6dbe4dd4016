package state

import "sync"

// idMutex has a mutex for each ID. A mutex that is not held uses no memory. The
// zero value is ready to use.
type idMutex struct {
	mu   sync.Mutex
	held map[string]*heldMutex
}

type heldMutex struct {
	sync.Mutex
	users int // goroutines that hold it or wait for it; guarded by idMutex.mu
}

// lock locks the mutex of id and returns the function that unlocks it.
func (m *idMutex) lock(id string) (unlock func()) {
	m.mu.Lock()
	h := m.held[id]
	if h == nil {
		if m.held == nil {
			m.held = make(map[string]*heldMutex)
		}
		h = &heldMutex{}
		m.held[id] = h
	}
	h.users++
	m.mu.Unlock()

	h.Lock()
	return func() {
		h.Unlock()
		m.mu.Lock()
		defer m.mu.Unlock()
		if h.users--; h.users == 0 {
			delete(m.held, id)
		}
	}
}
