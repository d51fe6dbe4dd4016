package upload

import (
	"sync"
	"time"

	"gcsup/backoff"
)

// The numbers of files that are uploaded at a time, if the caller does not set them.
const (
	firstSmall, maxSmall = 32, 1024
	firstLarge, maxLarge = 4, 64
)

// newLimiters returns the limiters of small and of large files, for a process that may have as
// many open files.
func newLimiters(openFiles int) (small, large *backoff.Limiter) {
	// A small file needs two: the source and a connection. A large one needs one more for its
	// lease, one for its Token, and more connections if it is sent in parts.
	return &backoff.Limiter{First: firstSmall, Max: max(min(maxSmall, openFiles/4), 1)},
		&backoff.Limiter{First: firstLarge, Max: max(min(maxLarge, openFiles/32), 1)}
}

// NewLimiters returns limiters of small and of large files, see [BatchOptions], for as many files at a time
// as this process may open.
func NewLimiters() (small, large *backoff.Limiter) { return newLimiters(openFiles()) }

// deciders returns how many small and large files, which do not count in the limiters, may be open
// until it is known whether they are uploaded.
func deciders(openFiles int) (small, large int) {
	return max(min(firstSmall, openFiles/8), 1), max(min(firstLarge, openFiles/32), 1)
}

// lane uploads the files of one kind, small or large ones. If the number of files at a time is not
// fixed, it has as many workers as the limiter permits. A worker waits for the limiter only if the
// number has fallen, or if another batch has the same limiter. If each file that ends let another
// worker continue, the change of goroutines would cost a tenth of the CPU time of a small file.
type lane struct {
	batch   *filesCall
	jobs    chan Job
	workers int              // without a limiter; with one, the most that decide
	worker  func()           // calls work
	limiter *backoff.Limiter // of the files that are uploaded; nil if their number is fixed
	streams bool             // the limiter gets the bytes of a file while they are sent

	mu       sync.Mutex
	running  int // workers
	deciding int // workers that do not upload; at most workers
	spare    int // workers that decide while as many others upload as the limiter permits
}

// newLane returns a lane for a fixed number of files, or, if that is 0, one with a limiter and a
// number of workers that decide.
func (b *filesCall) newLane(fixed, workers int, limiter *backoff.Limiter) *lane {
	l := &lane{batch: b, jobs: make(chan Job, queueLength), workers: workers, limiter: limiter}
	l.worker = func() {
		defer b.workers.Done()
		l.work()
	}
	if fixed > 0 {
		l.workers, l.limiter = fixed, nil
	}
	return l
}

// most returns how many files of the lane may be under way.
func (l *lane) most() int {
	switch {
	case l.limiter == nil:
		return l.workers
	case l.limiter.Max > 0:
		return l.workers + l.limiter.Max
	}
	return l.workers + maxSmall
}

// start starts the workers.
func (l *lane) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams {
		// The limit may grow before a file ends. A worker that waits for the limiter notices it.
		l.spare = l.half()
	}
	l.fill(l.workers)
}

// half returns how many workers decide about files that may be skipped, while all others upload.
func (l *lane) half() int { return (l.workers + 1) / 2 }

// room returns how many workers the lane should have. The caller holds l.mu.
func (l *lane) room() int {
	if l.limiter == nil {
		return l.workers
	}
	return l.limiter.Limit() + l.spare
}

// fill adds workers until that many decide, if there is room for them. The caller holds l.mu.
func (l *lane) fill(deciding int) {
	for room := l.room(); l.running < room && l.deciding < deciding; {
		l.running++
		l.deciding++
		l.batch.workers.Add(1)
		l.batch.u.goroutines.run(l.worker)
	}
}

// maybeSkipped records that a file of the queue may be skipped without a request. It should not wait until
// the uploads end, however few the limiter permits.
func (l *lane) maybeSkipped() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare = l.half()
	if l.running > 0 { // otherwise the batch was canceled, and its outcomes may be closed
		l.fill(l.half())
	}
}

// ends records that a worker ends, because no jobs remain or the batch was canceled.
func (l *lane) ends() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running-- // deciding stays, so that no worker is added for jobs that do not exist
}

// uploads records that a worker, which has decided, uploads its file.
func (l *lane) uploads() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deciding--
	l.fill(l.half())
}

// decides reports whether a worker, whose file was uploaded, continues with the next file.
func (l *lane) decides() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deciding == l.workers || l.running > l.room() {
		l.running--
		return false
	}
	l.deciding++
	return true
}

// work uploads files, until there are enough other workers, or no jobs remain.
func (l *lane) work() {
	b := l.batch
	for {
		select {
		case job, ok := <-l.jobs:
			if !ok || b.slots.Acquire(b.ctx, 1) != nil {
				l.ends()
				return
			}
			at := &place{lane: l}
			o := b.do(job, at)
			uploaded := at.leave(o)
			b.outcomes <- o
			if uploaded && !l.decides() {
				return
			}
		case <-b.ctx.Done():
			l.ends()
			return
		}
	}
}

// ended records in the limiter that a file ended.
func (l *lane) ended(o outcome) {
	var bytes int64
	if o.err == nil && o.result.Skipped == SkipNothing && !l.streams {
		bytes = o.result.Size
	}
	l.limiter.Ended(time.Now(), bytes)
}
