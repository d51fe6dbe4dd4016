package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// rateWait is how long a request of a Transport waits for a Rate. Requests that would wait longer
// start at random times between rateWait and Limit.
const rateWait = Limit / 2

// wait waits until a request may start. It returns the cause of ctx if ctx is done first.
//
// The requests wait in a queue, and only the first one reserves its time. A request that leaves the
// queue therefore delays no other, and the others follow a change of the rate. No request waits as
// long as Limit.
func (r *Rate) wait(ctx context.Context) error {
	queue, paced := r.turns()
	if !paced {
		return nil
	}
	timeout := time.NewTimer(rateWait + rand.N(longest-rateWait))
	defer timeout.Stop()
	select {
	case queue <- struct{}{}:
		defer func() { <-queue }()
	case <-timeout.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	due := r.Reserve(time.Now())
	if due <= 0 {
		return nil
	}
	timer := time.NewTimer(due)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-timeout.C: // many machines share a low rate
		r.Cancel()
		return nil
	case <-ctx.Done():
		r.Cancel()
		return context.Cause(ctx)
	}
}

// turns returns the queue of requests, which has room for the first one, and whether they are paced.
func (r *Rate) turns() (chan struct{}, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue == nil {
		r.queue = make(chan struct{}, 1)
	}
	return r.queue, r.rate > 0
}
