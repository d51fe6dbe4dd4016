package herd

import "slices"

// event is a client, or several that are alike, whose next request is due.
type event struct {
	at       int64  // ns
	count    uint32 // clients; 0: a gate may let the next client through
	client   uint32 // its number, which tells its gate
	tries    uint32 // requests refused since the last that was served
	left     uint16 // parts to be served yet
	passed   bool   // the gate has let this retry through
	retrying bool   // it counts this retry as under way
}

// wheel is a queue of events by time. All of its events are less than a turn
// apart: no wait is as long as a minute, and a turn is longer.
//
// Events are sorted only when their slot comes up, about a millisecond's worth
// at a time, which costs a small part of what one heap of all events does.
type wheel struct {
	slots [slotCount][]event
	free  [][]event // slices of slots gone by
	open  []event   // the slot that is being emptied, sorted
	next  int       // index in open
	spare []event   // for sort
	slot  int64     // number of the open slot since time 0
	size  int
}

const (
	slotWidth = 20      // a slot has 2^20 ns, 1.05 ms
	slotCount = 1 << 16 // 68.7 s a turn
)

func (w *wheel) push(e event) {
	w.size++
	slot := e.at >> slotWidth
	if slot == w.slot {
		i, _ := slices.BinarySearchFunc(w.open[w.next:], e, func(a, b event) int {
			if a.at <= b.at {
				return -1 // e comes after what is due at the same time
			}
			return 1
		})
		w.open = slices.Insert(w.open, w.next+i, e)
		return
	}
	events := &w.slots[slot%slotCount]
	if *events == nil && len(w.free) > 0 {
		*events = w.free[len(w.free)-1]
		w.free = w.free[:len(w.free)-1]
	}
	*events = append(*events, e)
}

// pop returns the earliest event, or false if there is none.
func (w *wheel) pop() (event, bool) {
	if w.size == 0 {
		return event{}, false
	}
	for w.next == len(w.open) {
		if cap(w.open) > 0 {
			w.free = append(w.free, w.open[:0])
		}
		w.slot++
		events := &w.slots[w.slot%slotCount]
		w.open, w.next, *events = *events, 0, nil
		w.sort()
	}
	e := w.open[w.next]
	w.next++
	w.size--
	return e, true
}

// sort sorts the open slot: first into 1024 parts of about a microsecond, then
// those. Events of the same time stay in their order.
func (w *wheel) sort() {
	if len(w.open) > 32 {
		const partWidth = slotWidth - 10
		var start [1025]int32
		for _, e := range w.open {
			start[(e.at>>partWidth)&1023+1]++
		}
		for i := range 1024 {
			start[i+1] += start[i]
		}
		sorted := slices.Grow(w.spare[:0], len(w.open))[:len(w.open)]
		for _, e := range w.open {
			part := &start[(e.at>>partWidth)&1023]
			sorted[*part] = e
			*part++
		}
		w.spare, w.open = w.open, sorted
	}
	// Insertion sort: no event is far from its place.
	for i := 1; i < len(w.open); i++ {
		e, j := w.open[i], i
		for ; j > 0 && w.open[j-1].at > e.at; j-- {
			w.open[j] = w.open[j-1]
		}
		w.open[j] = e
	}
}
