package retrysim

import (
	"cmp"
	"slices"
	"sort"
)

// queue has events in order of time. Events of the same time have the order in which they were
// pushed. It sorts events only when their slot of about a millisecond is opened, which costs much
// less than a heap of all events.
type queue struct {
	slots map[int64][]event
	slot  int64   // number of the open slot
	open  []event // the rest of the open slot, sorted
	size  int
}

type event struct {
	at int64 // ns
	do func()
}

const slotWidth = 20 // a slot has 2^20 ns

// push adds an event that is not earlier than the last one that was popped.
func (q *queue) push(e event) {
	q.size++
	if slot := e.at >> slotWidth; slot != q.slot {
		if q.slots == nil {
			q.slots = map[int64][]event{}
		}
		q.slots[slot] = append(q.slots[slot], e)
		return
	}
	i := sort.Search(len(q.open), func(i int) bool { return q.open[i].at > e.at })
	q.open = slices.Insert(q.open, i, e)
}

// pop returns the earliest event, or false if there is none.
func (q *queue) pop() (event, bool) {
	if q.size == 0 {
		return event{}, false
	}
	for len(q.open) == 0 {
		q.slot++
		q.open = q.slots[q.slot]
		delete(q.slots, q.slot)
		slices.SortStableFunc(q.open, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	}
	e := q.open[0]
	q.open[0].do = nil // its memory can be used again
	q.open = q.open[1:]
	q.size--
	return e, true
}
