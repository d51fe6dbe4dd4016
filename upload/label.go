package upload

import "sync"

// label is what an upload is called, in its Result, its events and its log. The goroutine
// of the job writes it, and any may read it.
type label struct {
	mu    sync.Mutex
	names names
}

// names are the fields of a label.
type names struct {
	upload   int64 // see Event
	id, path string
	spec     Spec
}

func (l *label) get() names {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names
}

func (l *label) set(change func(*names)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.names)
}
