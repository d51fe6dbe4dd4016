package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// rateWait is how long a request of a Transport waits for a Rate. Requests that would wait longer
// start at random times between rateWait and Limit.
const rateWait = Limit / 2

// Wait waits until a request may start, and returns how long that took. The caller makes the request,
// and records its outcome with Accepted or Refused, or calls [Rate.Cancel]. If ctx is done first, Wait
// returns its cause.
//
// Requests wait in a queue, in the order of the calls, and only the first one has reserved its time. A
// request that leaves the queue therefore delays no other, and the others follow a change of the rate.
// If retry is true, the request goes before those for which it is false, because a retry has waited already,
// and because a [Breaker] waits for its outcome.
func (r *Rate) Wait(ctx context.Context, retry bool) (time.Duration, error) {
	q := r.turns()
	if q == nil {
		return 0, nil
	}
	began := time.Now()
	err := r.turn(ctx, q, retry, nil)
	return time.Since(began), err
}

// wait is Wait for a request of a Transport, which does not wait as long as Limit.
func (r *Rate) wait(ctx context.Context) error {
	q := r.turns()
	if q == nil {
		return nil
	}
	timeout := time.NewTimer(rateWait + rand.N(longest-rateWait))
	defer timeout.Stop()
	return r.turn(ctx, q, false, timeout.C)
}

// rateQueue is the queue of the requests that wait for a Rate. Each channel has room for one.
type rateQueue struct {
	front chan struct{} // the request that has reserved its time; retries wait to be it
	first chan struct{} // the first of the other requests, which waits with the retries
}

// turn waits in the queue, and until the time that the request then reserves. After timeout, which may be
// nil, it returns nil.
func (r *Rate) turn(ctx context.Context, q *rateQueue, retry bool, timeout <-chan time.Time) error {
	places := []chan struct{}{q.first, q.front}
	if retry {
		places = places[1:]
	}
	for _, place := range places {
		select {
		case place <- struct{}{}:
			defer func() { <-place }()
		case <-timeout:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
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
	case <-timeout: // many machines share a low rate
		r.Cancel()
		return nil
	case <-ctx.Done():
		r.Cancel()
		return context.Cause(ctx)
	}
}

// turns returns the queue of requests, or nil if they are not paced.
func (r *Rate) turns() *rateQueue {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rate == 0 {
		return nil
	}
	if r.queue == nil {
		r.queue = &rateQueue{make(chan struct{}, 1), make(chan struct{}, 1)}
	}
	return r.queue
}
