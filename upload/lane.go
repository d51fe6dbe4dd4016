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

// lane uploads the files of one kind, small or large ones. A worker decides whether a file is
// uploaded. If the number of files at a time is not fixed, the file then waits for the limiter.
// While its worker uploads it, others decide about the next files. The number of goroutines is
// therefore that of the files which the limiter permits, and of those which wait for it.
type lane struct {
	batch   *filesCall
	jobs    chan Job
	workers int              // which decide; without a limiter, they also upload
	worker  func()           // calls work
	limiter *backoff.Limiter // of the files that are uploaded; nil if their number is fixed
	streams bool             // the limiter gets the bytes of a file while they are sent

	mu       sync.Mutex
	deciding int // workers that do not upload; with a limiter, at least half of workers
}

// newLane returns a lane for a fixed number of files, or, if that is 0, one with a limiter and a
// number of workers.
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
	l.deciding = l.workers
	for range l.workers {
		l.addWorker()
	}
}

// addWorker starts a worker.
func (l *lane) addWorker() {
	l.batch.workers.Add(1)
	l.batch.u.goroutines.run(l.worker)
}

// uploads records that a worker, which has decided, uploads its file.
func (l *lane) uploads() {
	l.mu.Lock()
	defer l.mu.Unlock()
	// If each worker had a successor, two goroutines would wake up for each file that ends: the one
	// whose file is next, and its successor.
	if l.deciding--; l.deciding < (l.workers+1)/2 {
		l.deciding++
		l.addWorker()
	}
}

// decides reports whether a worker, whose file was uploaded, continues with the next file.
func (l *lane) decides() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.deciding == l.workers {
		return false
	}
	l.deciding++
	return true
}

// work uploads files, until enough other workers decide, or no jobs remain.
func (l *lane) work() {
	b := l.batch
	for {
		select {
		case job, ok := <-l.jobs:
			if !ok || b.slots.Acquire(b.ctx, 1) != nil {
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
