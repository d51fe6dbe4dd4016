package batch

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"gcsup/backoff"
)

// queueLength is the capacity of each of the two queues. It is large, so that a
// sequence of large files does not delay the small ones after it.
const queueLength = 1024

// Kind configures one of the two kinds of jobs.
type Kind struct {
	Fixed    int              // jobs at a time; 0 means as many as the limiter permits
	Limiter  *backoff.Limiter // of the jobs that upload; not used if their number is fixed
	Deciders int              // how many jobs may be under way, besides those, until they upload
	Streams  bool             // the limiter gets the bytes of a job while they are sent
}

// lane runs the jobs of one kind. If their number at a time is not fixed, it has as many workers as the limiter permits.
// A worker waits for the limiter only if the number has fallen, or if another batch has the same limiter. If each job
// that ends let another worker continue, the change of goroutines would cost a tenth of the CPU time of a small file.
type lane[J any] struct {
	counter
	ctx   context.Context
	jobs  chan J
	do    func(J, *Place)
	slots *semaphore.Weighted // of the pool
}

// counter counts the workers of a lane.
type counter struct {
	run     func()           // starts a worker
	workers int              // without a limiter; with one, the most that decide
	limiter *backoff.Limiter // nil if the number of jobs is fixed
	streams bool

	mu       sync.Mutex
	running  int // workers
	deciding int // workers that do not upload; at most workers
	spare    int // workers that decide while as many others upload as the limiter permits
}

// newLane returns a lane whose workers call do.
func newLane[J any](ctx context.Context, k Kind, do func(J, *Place)) *lane[J] {
	l := &lane[J]{counter: counter{limiter: k.Limiter, streams: k.Streams, workers: k.Deciders}, ctx: ctx, jobs: make(chan J, queueLength), do: do}
	if k.Fixed > 0 {
		l.workers, l.limiter = k.Fixed, nil
	}
	return l
}

// most returns how many jobs of the lane may be under way.
func (l *counter) most() int {
	switch {
	case l.limiter == nil:
		return l.workers
	case l.limiter.Max > 0:
		return l.workers + l.limiter.Max
	}
	return l.workers + MaxSmall
}

// begin starts the workers.
func (l *counter) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams {
		// The limit may grow before a file ends. A worker that waits for the limiter notices it.
		l.spare = l.half()
	}
	l.fill(l.workers)
}

// half returns how many workers decide about jobs that may be skipped, while all others upload.
func (l *counter) half() int { return (l.workers + 1) / 2 }

// room returns how many workers the lane should have. The caller holds l.mu.
func (l *counter) room() int {
	if l.limiter == nil {
		return l.workers
	}
	return l.limiter.Limit() + l.spare
}

// fill adds workers until that many decide, if there is room for them. The caller holds l.mu.
func (l *counter) fill(deciding int) {
	for room := l.room(); l.running < room && l.deciding < deciding; {
		l.running++
		l.deciding++
		l.run()
	}
}

// maybeSkipped records that a job of the queue may be skipped without a request. It should not wait until
// the uploads end, however few the limiter permits.
func (l *counter) maybeSkipped() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare = l.half()
	if l.running > 0 { // otherwise the batch was canceled, and its outcomes may be closed
		l.fill(l.half())
	}
}

// ends records that a worker ends, because no jobs remain or the batch was canceled.
func (l *counter) ends() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running-- // deciding stays, so that no worker is added for jobs that do not exist
}

// uploads records that a worker has decided, and uploads.
func (l *counter) uploads() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deciding--
	l.fill(l.half())
}

// decides reports whether a worker, which uploaded, continues with the next job.
func (l *counter) decides() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deciding == l.workers || l.running > l.room() {
		l.running--
		return false
	}
	l.deciding++
	return true
}

// work runs jobs, until there are enough other workers, or no jobs remain.
func (l *lane[J]) work() {
	for {
		select {
		case job, ok := <-l.jobs:
			if !ok || l.slots.Acquire(l.ctx, 1) != nil {
				l.ends()
				return
			}
			at := &Place{of: &l.counter}
			l.do(job, at)
			if at.taken && !l.decides() {
				return
			}
		case <-l.ctx.Done():
			l.ends()
			return
		}
	}
}

// Place is that of one job in its lane. A job of a kind with a fixed number has it from the beginning.
type Place struct {
	of *counter

	mu          sync.Mutex
	taken, left bool
}

// Limited reports whether the number of jobs is not fixed.
func (p *Place) Limited() bool { return p.of.limiter != nil }

// Take waits for the limiter before the first request of the job. It may be called more than once. waited is true if
// it waited, so that other jobs may have failed meanwhile. The error is that of ctx, or that of a job that has ended.
func (p *Place) Take(ctx context.Context) (waited bool, err error) {
	p.mu.Lock()
	taken := p.taken
	p.mu.Unlock()
	if taken || !p.Limited() {
		return false, nil
	}
	l := p.of
	if err := l.limiter.Acquire(ctx); err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left { // the worker did not wait for the job
		l.limiter.Ended(time.Now(), 0)
		return false, context.Canceled
	}
	p.taken = true
	l.uploads()
	return true, nil
}

// leave ends the job, which uploaded bytes that the limiter does not know.
func (p *Place) leave(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	if p.taken {
		if p.of.streams {
			bytes = 0
		}
		p.of.limiter.Ended(time.Now(), bytes)
	}
}

// Sent records that n bytes of the job were handed to the network.
func (p *Place) Sent(n int) {
	if p.of.streams {
		p.of.limiter.Progress(time.Now(), int64(n))
	}
}

// Refused records that the service refused a request because of its load. A request before the job has its
// turn does not count: the limiter does not see those of them that are accepted.
func (p *Place) Refused() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken && !p.left {
		p.of.limiter.Refused(time.Now())
	}
}
