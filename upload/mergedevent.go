package upload

import "sync/atomic"

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
