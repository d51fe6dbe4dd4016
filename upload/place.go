package upload

import (
	"context"
	"sync"
	"time"

	"gcsup/upload/internal/engine"
)

// place is that of one file in its lane. Only the files of a lane with a limiter take theirs.
type place struct {
	lane *lane

	mu          sync.Mutex
	taken, left bool
}

// take waits for the limiter before the first request of the file. It may be called more than
// once.
func (p *place) take(ctx context.Context, spec Spec) error {
	l := p.lane
	p.mu.Lock()
	taken := p.taken
	p.mu.Unlock()
	if taken {
		return nil
	}
	if l.limiter.Acquire(ctx) != nil {
		return engine.NewInterruption(ctx, nil)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left { // the worker did not wait for the job
		l.limiter.Ended(time.Now(), 0)
		return engine.NewInterruption(ctx, nil)
	}
	p.taken = true
	l.uploads()
	return l.batch.notTried(spec) // other files may have failed during the wait
}

// leave ends the file with an outcome. It reports whether the file had waited for the limiter.
func (p *place) leave(o outcome) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	if p.taken {
		p.lane.ended(o)
	}
	return p.taken
}

// Sent records that n bytes of the file were handed to the network.
func (p *place) Sent(n int) {
	if p.lane.streams {
		p.lane.limiter.Progress(time.Now(), int64(n))
	}
}

// Refused records that the service refused a request because of its load. A request before the file has its
// turn does not count: the limiter does not see those of them that are accepted.
func (p *place) Refused() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken && !p.left {
		p.lane.limiter.Refused(time.Now())
	}
}
