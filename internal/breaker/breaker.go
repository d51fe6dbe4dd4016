// Package breaker decides which operations may retry requests to a service that is down.
// [gcsup/backoff.Breaker] describes the rules, and adds a lock and a timer. Package retrysim uses
// the same decisions in virtual time.
package breaker

import (
	"container/list"
	"time"
)

// defaultThreshold is a compromise. If one request in ten fails at random, one
// failure in ten thousand opens the breaker. If 32 uploads fail together, it
// opens at once.
const defaultThreshold = 5

// A Breaker limits the retries of operations. The zero value admits all of them until
// enough requests have failed. It is not safe for concurrent use. After each call of another
// method, the caller must call Admit.
type Breaker struct {
	row      int        // failures since the last success
	first    *Operation // the operation of the first of these failures; nil if there is none, or if it ended
	several  bool       // another operation failed too
	failing  int        // operations that failed and have not succeeded or ended since
	limit    int        // retries that may be under way; 0 if all are admitted
	underWay int        // retries that were admitted under a limit, and whose outcome is not known
	probes   int        // retries that failed since the last successful one

	// next is the time at which a retry is admitted even if limit retries are under way.
	// If limit is 1, no retry is admitted earlier.
	next    time.Time
	waiting list.List // of *Operation; the front has waited longest
}

// An Operation is the state of one operation at a Breaker. The zero value is ready to use.
type Operation struct {
	failing  bool          // counted in Breaker.failing
	retrying bool          // counted in Breaker.underWay
	patience time.Duration // how long its retry may delay the next one
	admit    func()        // is called when it may retry
	element  *list.Element // in Breaker.waiting; nil if the operation does not wait
}

// Open reports whether retries are limited.
func (b *Breaker) Open() bool { return b.limit > 0 }

// Failed records that a request of an operation failed. Threshold is how many must fail in a
// row; 0 means the default. wait returns how long the next probe waits after a number of failed
// ones.
func (b *Breaker) Failed(o *Operation, now time.Time, threshold int, wait func(probes int) time.Duration) {
	retried := b.release(o)
	if !o.failing {
		o.failing = true
		b.failing++
	}
	b.row++
	if b.first == nil {
		b.first = o
	}
	b.several = b.several || b.first != o
	if threshold == 0 {
		threshold = defaultThreshold
	}
	switch {
	case b.limit == 0 && b.several && b.row >= threshold:
		// The first operation whose own wait ends makes the probe.
		b.limit, b.next = 1, now
	case b.limit > 0 && retried:
		b.limit /= 2
		if b.limit <= 1 {
			b.limit = 1
			b.next = now.Add(wait(b.probes))
			b.probes++
		}
	}
}

// Succeeded records that a request of an operation succeeded. Only the success of a retry
// raises the limit. The first requests of other operations may be of a kind that
// does not fail, such as the start of a session while data is refused.
func (b *Breaker) Succeeded(o *Operation) {
	b.row, b.first, b.several = 0, nil, false
	b.release(o)
	if !b.forget(o) || b.limit == 0 {
		return
	}
	b.probes = 0
	b.limit++
	if b.limit > b.failing {
		b.limit = 0
	}
}

// Wait has an operation wait for its retry. Admit calls admit. The next retry then waits for the
// outcome of this one, but not longer than patience.
func (b *Breaker) Wait(o *Operation, patience time.Duration, admit func()) {
	o.patience, o.admit = patience, admit
	o.element = b.waiting.PushBack(o)
}

// Leave records that an operation ended, or failed for a reason that does not concern the
// service. If it was admitted, the next operation is admitted instead. The limit ends
// when all failing operations have left, because the next failure is that
// of a lone operation.
func (b *Breaker) Leave(o *Operation, now time.Time) {
	if o.element != nil {
		b.waiting.Remove(o.element)
		o.element = nil
	}
	released := b.release(o)
	if forgot := b.forget(o); !released && !forgot {
		return
	}
	switch {
	case b.failing == 0:
		b.row, b.first, b.several, b.probes, b.limit = 0, nil, false, 0, 0
	case released && b.underWay == 0:
		b.next = now
	}
	if b.first == o {
		b.first = nil
	}
}

// Admit admits all waiting operations that may retry now. It must be called again at the time
// that it returns; the zero time means that none waits.
func (b *Breaker) Admit(now time.Time) (next time.Time) {
	for b.waiting.Len() > 0 {
		free := b.limit == 0 || b.limit > 1 && b.underWay < b.limit
		if !free && now.Before(b.next) {
			return b.next
		}
		o := b.waiting.Remove(b.waiting.Front()).(*Operation)
		o.element = nil
		if b.limit > 0 {
			o.retrying = true
			b.underWay++
			b.next = now.Add(o.patience)
		}
		o.admit()
	}
	return time.Time{}
}

// release ends the retry of an operation, and reports whether one was under way.
func (b *Breaker) release(o *Operation) bool {
	if !o.retrying {
		return false
	}
	o.retrying = false
	b.underWay--
	return true
}

// forget removes an operation from the failing ones, and reports whether it was one.
func (b *Breaker) forget(o *Operation) bool {
	if !o.failing {
		return false
	}
	o.failing = false
	b.failing--
	return true
}
