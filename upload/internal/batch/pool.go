package batch

import (
	"context"
	"gcsup/internal/grace"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Pool runs the jobs of a batch, several at a time: small and large ones, each kind with its own number. A job is any
// value, and so is its outcome.
type Pool[J, O any] struct {
	Goroutines *Goroutines // of the workers, which the jobs may use, too

	ctx          context.Context
	small, large *lane[J]
	workers      sync.WaitGroup
	slots        *semaphore.Weighted // one for each job until the caller has its outcome
	outcomes     chan O
}

// NewPool returns a Pool that ends with ctx. It runs at most jobs at a time, or without this limit if jobs is 0. do runs a
// job at a place, and returns its outcome and the bytes that it uploaded.
func NewPool[J, O any](ctx context.Context, small, large Kind, jobs int, do func(J, *Place) (O, int64)) *Pool[J, O] {
	p := &Pool[J, O]{Goroutines: NewGoroutines(ctx), ctx: ctx, outcomes: make(chan O)}
	run := func(job J, at *Place) {
		o, bytes := do(job, at)
		at.leave(bytes)
		p.outcomes <- o
	}
	p.small, p.large = newLane(ctx, small, run), newLane(ctx, large, run)
	if jobs <= 0 {
		jobs = p.small.most() + p.large.most()
	}
	p.slots = semaphore.NewWeighted(int64(jobs))
	for _, l := range []*lane[J]{p.small, p.large} {
		l.slots = p.slots
		worker := func() {
			defer p.workers.Done()
			l.work()
		}
		l.run = func() {
			p.workers.Add(1)
			p.Goroutines.Run(worker)
		}
	}
	return p
}

// Run calls read in a goroutine, which calls Put for each job, and yields the outcomes in the order in which the jobs
// end. It returns false if the iteration ended early. The caller must then cancel the context and call Drain.
func (p *Pool[J, O]) Run(read func(), yield func(O) bool) bool {
	p.small.begin()
	p.large.begin()
	done := make(chan struct{}) // closed when all jobs are read
	go func() {
		defer close(done)
		defer close(p.small.jobs)
		defer close(p.large.jobs)
		read()
	}()
	go func() {
		p.workers.Wait()
		// Reading the next job may block, for example in a directory of a file server that
		// does not respond.
		Await(p.ctx, done, grace.Call)
		close(p.outcomes)
	}()
	for o := range p.outcomes {
		if !yield(o) {
			return false
		}
		p.slots.Release(1) // only now, because the caller may record finished jobs
	}
	return true
}

// Drain waits until all jobs have ended, after the context was canceled.
func (p *Pool[J, O]) Drain() {
	for range p.outcomes {
	}
}

// Put runs a job. maybeSkipped reports that it may need no turn. It returns false if the context is done.
func (p *Pool[J, O]) Put(job J, large, maybeSkipped bool) bool {
	to := p.small
	if large {
		to = p.large
	}
	if to.limiter != nil && maybeSkipped {
		to.maybeSkipped()
	}
	select {
	case to.jobs <- job:
		return p.ctx.Err() == nil
	case <-p.ctx.Done():
		return false
	}
}
