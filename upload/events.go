package upload

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// progressEvery is the least time between two Progress events while bytes flow,
// and between two Verifying events.
const progressEvery = 200 * time.Millisecond

// events delivers the events of one upload to the observer, in a goroutine of
// its own, so that a slow observer delays nothing. Reports of progress are
// merged: the observer gets the newest one when it is ready for it. All other
// events are queued.
//
// A nil *events discards everything.
type events struct {
	observe  func(Event)
	position func() (size, sent, committed int64)
	wake     chan struct{} // holds at most one
	done     chan struct{} // closed when the goroutine has ended

	frequent atomic.Int64 // the kind of the merged event that is due, or none
	urgent   atomic.Bool  // deliver it without regard to progressEvery
	compared comparison

	mu     sync.Mutex // never held during a delivery
	common Event      // what every event has: ID, Path and Spec
	queue  []Event
	last   EventKind // of the newest event that was queued or due
	ending ending
}

// comparison is how far the source was read, see [Event].
type comparison struct{ compared, toCompare atomic.Int64 }

// ending is how the goroutine of events ends.
type ending int

const (
	notEnding ending = iota
	closing          // once everything is delivered
	dropping         // at once
)

const none = -1 // no kind of event

// newEvents starts the goroutine. The caller must call close.
func newEvents(observe func(Event), position func() (size, sent, committed int64)) *events {
	if observe == nil {
		return nil
	}
	e := &events{
		observe: observe, position: position,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		last: none,
	}
	e.frequent.Store(none)
	go e.deliver()
	return e
}

// identify sets what every event carries.
func (e *events) identify(id string, spec Spec) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.common.ID, e.common.Spec = id, spec
}

// source sets the path of the source that every event carries.
func (e *events) source(path string) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.common.Path = path
}

// post queues an event. A merged event that is due is dropped: this one is
// newer, and carries the same numbers.
func (e *events) post(v Event) {
	if e == nil {
		return
	}
	e.mu.Lock()
	e.queue = append(e.queue, e.complete(v))
	e.last = v.Kind
	e.frequent.Store(none)
	e.mu.Unlock()
	e.signal()
}

// flowing reports that bytes were handed to the network. It is called for every
// read of a body: it takes no lock and allocates nothing.
func (e *events) flowing() {
	if e == nil {
		return
	}
	e.frequent.Store(int64(Progress))
	e.signal()
}

// progress reports that the server committed more bytes.
func (e *events) progress() {
	if e == nil {
		return
	}
	e.urgent.Store(true)
	e.flowing()
}

// comparing reports that the source was read up to offset, of the bytes up to
// end that must be read again. The first such event is always delivered.
func (e *events) comparing(offset, end int64) {
	if e == nil {
		return
	}
	e.compared.compared.Store(offset)
	e.compared.toCompare.Store(end)
	e.mu.Lock()
	first := e.last != Verifying
	e.mu.Unlock()
	if first {
		e.post(Event{Kind: Verifying, Compared: offset, ToCompare: end})
		return
	}
	e.frequent.Store(int64(Verifying))
	e.signal()
}

// complete adds what every event carries. e.mu is held.
func (e *events) complete(v Event) Event {
	v.ID, v.Path, v.Spec = e.common.ID, e.common.Path, e.common.Spec
	v.Size, v.Sent, v.Committed = e.position()
	return v
}

func (e *events) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// deliver is the goroutine.
func (e *events) deliver() {
	defer close(e.done)
	timer := time.NewTimer(0)
	<-timer.C
	var reported time.Time // when the last merged event was delivered
	for {
		select {
		case <-e.wake:
		case <-timer.C:
		}
		for v, ok := e.next(); ok; v, ok = e.next() {
			e.observe(v)
		}
		last := e.isLast()
		switch left := progressEvery - time.Since(reported); {
		case e.frequent.Load() == none:
		case left > 0 && !last && !e.urgent.Load():
			timer.Reset(left)
		default:
			if v, ok := e.merged(); ok {
				reported = time.Now()
				e.observe(v)
			}
		}
		if last {
			return
		}
	}
}

// next takes the oldest event out of the queue.
func (e *events) next() (Event, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 || e.ending == dropping {
		return Event{}, false
	}
	v := e.queue[0]
	e.queue = e.queue[1:]
	return v, true
}

// merged returns the merged event that is due.
func (e *events) merged() (Event, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.urgent.Store(false)
	kind := EventKind(e.frequent.Swap(none))
	if kind == none || e.ending == dropping {
		return Event{}, false
	}
	e.last = kind
	v := Event{Kind: kind}
	if kind == Verifying {
		v.Compared, v.ToCompare = e.compared.compared.Load(), e.compared.toCompare.Load()
	}
	return e.complete(v), true
}

// isLast reports whether everything there is has been delivered and nothing
// more will come.
func (e *events) isLast() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ending == closing && len(e.queue) == 0 || e.ending == dropping
}

// close waits until the observer had its last event, but not longer than ctx
// lasts: then the rest is dropped, and a call of the observer that is under way
// may last longer than the upload. Nothing may be posted after close.
func (e *events) close(ctx context.Context) {
	if e == nil {
		return
	}
	e.mu.Lock()
	e.ending = closing
	e.mu.Unlock()
	e.signal()
	select {
	case <-e.done:
	case <-ctx.Done():
		e.mu.Lock()
		e.ending = dropping
		e.mu.Unlock()
		e.signal()
	}
}
