package upload

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"gcsup/internal/grace"
	"gcsup/upload/internal/batch"
)

// progressEvery is the least time between two Progress events while bytes flow,
// and between two Verifying events.
const progressEvery = 200 * time.Millisecond

// events delivers the events and exchanges of one upload to the observer and the
// exchange hook, in a goroutine of its own, so that slow ones delay nothing.
// Reports of progress are merged: the observer gets the newest one when it is
// ready for it. All others are queued.
//
// A nil *events discards everything.
type events struct {
	observe  func(Event)     // nil if there is no observer
	hook     func(Exchange)  // nil if there is none
	ctx      context.Context // of the call
	label    *label
	describe func(*Event) int64 // see progress
	merged   mergedEvent
	wake     chan struct{} // holds at most one
	done     chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex // never held during a delivery
	queue  []notice
	last   EventKind // of the newest event that was queued or due
	ending bool      // nothing more is queued
	sum    counts
	opened bool  // a session was opened or resumed, so that committed bytes count
	held   int64 // Committed of the last event

	delivered counts // those of the last event that was delivered; for the goroutine
}

// notice is an event or an exchange that is delivered.
type notice struct {
	event    Event
	exchange *Exchange // nil for an event
}

// newEvents starts the goroutine, unless u has no observer and no hook. The caller must call close.
func newEvents(ctx context.Context, u *Uploader, l *label, describe func(*Event) int64) *events {
	if u.opts.Observer == nil && u.opts.Exchange == nil {
		return nil
	}
	e := &events{
		observe: u.opts.Observer, hook: u.opts.Exchange, ctx: ctx, label: l, describe: describe,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		last: none,
	}
	e.merged.drop()
	u.goroutines.Run(e.deliver)
	return e
}

// post queues an event. A merged event that is due is dropped: this one is
// newer, and carries the same numbers.
func (e *events) post(v Event) {
	if e == nil || e.observe == nil {
		return
	}
	e.mu.Lock()
	if !e.ending {
		e.queue = append(e.queue, notice{event: e.complete(v)})
		e.last = v.Kind
		e.merged.drop()
	}
	e.mu.Unlock()
	e.signal()
}

// exchanged queues an exchange.
func (e *events) exchanged(v Exchange) {
	if e == nil || e.hook == nil {
		return
	}
	e.mu.Lock()
	if !e.ending {
		n := e.label.get()
		v.Upload, v.ID, v.Spec = n.upload, n.id, n.spec
		e.queue = append(e.queue, notice{exchange: &v})
	}
	e.mu.Unlock()
	e.signal()
}

// flowing reports that bytes were handed to the network. It is called for every
// read of a body: it takes no lock and allocates nothing.
func (e *events) flowing() {
	if e == nil || e.observe == nil {
		return
	}
	e.merged.replace(Progress)
	e.signal()
}

// committed reports that the server committed more bytes.
func (e *events) committed() {
	if e == nil || e.observe == nil {
		return
	}
	e.merged.urgent.Store(true)
	e.flowing()
}

// comparing reports that the source was read up to offset, of the bytes up to
// end that must be read again. The first such event is always delivered.
func (e *events) comparing(offset, end int64) {
	if e == nil || e.observe == nil {
		return
	}
	e.merged.compared.Store(offset)
	e.merged.toCompare.Store(end)
	e.mu.Lock()
	first := e.last != Verifying
	e.mu.Unlock()
	if first {
		e.post(Event{Kind: Verifying, Compared: offset, ToCompare: end})
		return
	}
	e.merged.replace(Verifying)
	e.signal()
}

// complete adds what every event carries. e.mu is held.
func (e *events) complete(v Event) Event {
	n := e.label.get()
	v.Time, v.ctx = time.Now(), e.ctx
	v.Upload, v.ID, v.Path, v.Spec = n.upload, n.id, n.path, n.spec
	e.sum.sent = e.describe(&v)
	if e.opened {
		e.sum.committed += v.Committed - e.held
	}
	e.opened = e.opened || v.Kind == Started || v.Kind == Resumed
	e.held, v.sum = v.Committed, e.sum
	return v
}

// give delivers an event to the observer, with the changes since the one before. They are
// computed here, because an event may have been dropped after it was completed.
func (e *events) give(v Event) {
	v.SentDelta, v.CommittedDelta = v.sum.sent-e.delivered.sent, v.sum.committed-e.delivered.committed
	e.delivered = v.sum
	e.observe(v)
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
	var due <-chan time.Time // when a merged event is due; nil if none waits
	var reported time.Time   // when the last merged event was delivered
	for {
		select {
		case <-e.wake:
		case <-due:
			due = nil
		}
		for v, ok := e.next(); ok; v, ok = e.next() {
			if v.exchange != nil {
				e.hook(*v.exchange)
			} else {
				e.give(v.event)
			}
		}
		last := e.isLast()
		switch left := progressEvery - time.Since(reported); {
		case !e.merged.due():
		case left > 0 && !last && !e.merged.urgent.Load():
			if due == nil {
				due = time.After(left)
			}
		default:
			if v, ok := e.nextMerged(); ok {
				reported = time.Now()
				e.give(v)
			}
		}
		if last {
			return
		}
	}
}

// next takes the oldest notice out of the queue.
func (e *events) next() (notice, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return notice{}, false
	}
	v := e.queue[0]
	e.queue = e.queue[1:]
	return v, true
}

// nextMerged returns the merged event that is due, unless one that was queued meanwhile must be
// delivered before it.
func (e *events) nextMerged() (Event, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ending || len(e.queue) > 0 {
		return Event{}, false
	}
	return e.takeMerged()
}

// takeMerged is nextMerged without the lock. e.mu is held.
func (e *events) takeMerged() (Event, bool) {
	v, ok := e.merged.take()
	if !ok {
		return Event{}, false
	}
	e.last = v.Kind
	return e.complete(v), true
}

// isLast reports whether everything there is has been delivered and nothing
// more will come.
func (e *events) isLast() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ending && len(e.queue) == 0
}

// close posts the last event and waits until the observer had it. Once ctx is done,
// it waits for grace.Event only. Then the rest is dropped, except the last
// event: the observer gets it when it returns, which may be after the upload.
// Nothing that is posted after close is delivered. last is nil for the events of a
// listing, which is no upload.
func (e *events) close(ctx context.Context, last *Event) {
	if e == nil {
		return
	}
	e.mu.Lock()
	if v, ok := e.takeMerged(); ok {
		e.queue = append(e.queue, notice{event: v})
	}
	if last != nil && e.observe != nil {
		e.queue = append(e.queue, notice{event: e.complete(*last)})
	}
	e.ending = true
	e.mu.Unlock()
	e.signal()
	if !batch.Await(ctx, e.done, grace.Event) {
		e.mu.Lock()
		if last == nil {
			e.queue = nil
		} else {
			e.queue = e.queue[max(0, len(e.queue)-1):]
		}
		e.mu.Unlock()
	}
}

// mergedEvent is a Progress or Verifying event that is due. A newer one replaces it. It
// takes no lock, because each read of a body makes one.
type mergedEvent struct {
	kind   atomic.Int64 // or none
	urgent atomic.Bool  // deliver it without regard to progressEvery

	compared, toCompare atomic.Int64 // see [Event]
}

const none = -1 // no kind of event

// due reports whether there is an event.
func (m *mergedEvent) due() bool { return m.kind.Load() != none }

// replace makes an event of a kind the one that is due.
func (m *mergedEvent) replace(kind EventKind) { m.kind.Store(int64(kind)) }

// drop removes the event that is due.
func (m *mergedEvent) drop() { m.kind.Store(none) }

// take returns the event that is due, and removes it.
func (m *mergedEvent) take() (v Event, ok bool) {
	m.urgent.Store(false)
	kind := EventKind(m.kind.Swap(none))
	if kind == none {
		return Event{}, false
	}
	v.Kind = kind
	if kind == Verifying {
		v.Compared, v.ToCompare = m.compared.Load(), m.toCompare.Load()
	}
	return v, true
}

// label is what an upload is called, in its Result, its events and its log. The goroutine
// of the call writes it, and any may read it.
type label struct {
	mu    sync.Mutex
	names names
}

// names are the fields of a label.
type names struct {
	upload   int64 // see Event
	id, path string
	spec     Spec
}

func (l *label) get() names {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names
}

func (l *label) set(change func(*names)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.names)
}
