package fakegcs

import "sync"

// runningRequests are the requests that a server is processing.
type runningRequests struct {
	mu     sync.Mutex
	closed bool
	paused chan struct{} // closed when requests may enter again; nil if they may now
	bodies map[*body]bool
	wg     sync.WaitGroup // includes work that ends after its request
}

// enter adds a request. It returns false if the server is closed.
func (r *runningRequests) enter(b *body) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.paused != nil {
		paused := r.paused
		r.mu.Unlock()
		<-paused
		r.mu.Lock()
	}
	if r.closed {
		return false
	}
	if r.bodies == nil {
		r.bodies = map[*body]bool{}
	}
	r.bodies[b] = true
	r.wg.Add(1)
	return true
}

func (r *runningRequests) leave(b *body) {
	r.mu.Lock()
	delete(r.bodies, b)
	r.mu.Unlock()
	r.wg.Done()
}

// close interrupts all requests and refuses new ones. It reports whether this is the
// first call.
func (r *runningRequests) close() (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first = !r.closed
	r.closed = true
	r.interruptLocked()
	return first
}

// pause interrupts all requests, and lets new ones wait for resume. It returns false if the
// server is closed. Calls of pause must not overlap.
func (r *runningRequests) pause() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.paused = make(chan struct{})
	r.interruptLocked()
	return true
}

func (r *runningRequests) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.paused)
	r.paused = nil
}

func (r *runningRequests) interruptLocked() {
	for b := range r.bodies {
		b.interrupt()
	}
}
