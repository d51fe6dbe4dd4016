package retrysim

import "slices"

// event is the next request of a client, or of several interchangeable clients.
type event struct {
	at       int64  // ns
	count    uint32 // number of clients; 0 if the event is that a gate may admit the next client
	client   uint32 // number of the client, which determines its gate
	tries    uint32 // refused requests since the last served one
	left     uint16 // parts that are not served yet
	passed   bool   // the gate has admitted this retry
	retrying bool   // the gate counts this retry as under way
	beat     bool   // no request: the worker of that number publishes and reads conditions
}

// wheel is a queue of events by time. Its events are less than a turn apart: a
// wait is shorter than a minute, and a turn is longer.
//
// Events are sorted only when their slot is opened. A slot has about a
// millisecond. This costs much less than a heap of all events.
type wheel struct {
	slots [slotCount][]event
	free  [][]event // slices of past slots, for reuse
	open  []event   // events of the open slot, sorted
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
				return -1 // e follows the events of the same time
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
// each part. The sort is stable.
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
	// Insertion sort, because every event is near its place.
	for i := 1; i < len(w.open); i++ {
		e, j := w.open[i], i
		for ; j > 0 && w.open[j-1].at > e.at; j-- {
			w.open[j] = w.open[j-1]
		}
		w.open[j] = e
	}
}
