package connections

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gcsup/upload/internal/atrisk"
)

// Pool grants slots. With a slot, a worker sends bytes over one connection.
// The files of a [Link] share a tuned pool, whose tuner chooses the number of
// slots. A [Fixed] pool is for one file.
type Pool struct {
	held    func() time.Duration // see Link
	failing func() bool          // see Link
	every   func() time.Duration // length of an interval; nil if the number of slots is fixed
	long    func() bool          // see Link.Long

	mu       sync.Mutex
	tuner    tuner     // its level is the number of slots
	sufficed time.Time // when a file ended with the result that one connection suffices
	shares   []*Share
	slots    []*Slot       // in use
	stop     chan struct{} // closed to stop observe; nil if it does not run
	moved    int64         // bytes of slots that were released in this interval
	busy     int           // number of these slots that moved bytes in it
}

// Slot is the permission to send one part over one connection.
type Slot struct {
	Risk     *atrisk.Risk // what the part has at risk
	moved    atomic.Int64 // see Moved
	reported int64        // bytes that were counted in earlier intervals
	quiet    int          // intervals in a row without bytes
	before   rates        // rates of its share when the slot was acquired
}

// Share is the part of a pool that one file uses.
type Share struct {
	pool    *Pool
	left    func() int64    // bytes of the file that are not committed; nil if its size is not known
	held    int             // slots
	sending int             // of these, those whose worker has bytes at risk and sends
	waiting []chan struct{} // each closed when its worker gets a slot
	rates   rates
	since   time.Time // when sending last changed
}

// Moved counts n bytes that were sent.
func (s *Slot) Moved(n int64) { s.moved.Add(n) }

// Fixed returns a pool of n slots for one file.
func Fixed(n int) *Pool { return &Pool{tuner: tuner{level: max(n, 1)}} }

// oneSuffices reports whether the tuner found recently that one connection suffices.
func (c *Pool) oneSuffices() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tuner.oneSuffices() && time.Since(c.sufficed) < measuredFor
}

// Join returns the share of another file. left returns how many of its bytes are not committed; it is nil if the size
// of the file is not known. The caller must call Leave.
func (c *Pool) Join(left func() int64) *Share {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &Share{pool: c, left: left, since: time.Now()}
	c.shares = append(c.shares, s)
	if c.every != nil && c.stop == nil {
		c.tuner.setLong(c.long())
		c.tuner.resume()
		c.stop = make(chan struct{})
		go c.observe(c.stop, c.every())
	}
	return s
}

// Leave removes the share of a file from the pool, and returns its connections and rates. No
// slot of it may be in use.
func (s *Share) Leave() Usage {
	c := s.pool
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shares = slices.DeleteFunc(c.shares, func(other *Share) bool { return other == s })
	if len(c.shares) == 0 && c.stop != nil {
		close(c.stop)
		c.stop = nil
	}
	if c.tuner.oneSuffices() {
		c.sufficed = time.Now()
	}
	return s.rates.usage()
}

// grant gives free slots to waiting workers, first to the file that has the fewest. A
// file without a slot gets one even if none is free, so that no file waits for a part
// of another one. The caller holds c.mu.
func (c *Pool) grant() {
	for {
		var next *Share
		held := 0
		for _, s := range c.shares {
			held += s.held
			if len(s.waiting) > 0 && (next == nil || s.held < next.held) {
				next = s
			}
		}
		if next == nil || next.held > 0 && held >= c.tuner.level {
			return
		}
		close(next.waiting[0])
		next.waiting = next.waiting[1:]
		next.held++
	}
}

// addSending adds n to the number of connections of the file. The caller holds s.pool.mu.
func (s *Share) addSending(n int) {
	now := time.Now()
	s.rates.addTime(s.sending, now.Sub(s.since))
	s.since, s.sending = now, s.sending+n
}

// Queue adds a worker at the end of the queue of the file for slots. ready is closed when the worker
// gets one. The caller must call Await with it.
func (s *Share) Queue() (ready chan struct{}) {
	c := s.pool
	c.mu.Lock()
	defer c.mu.Unlock()
	ready = make(chan struct{})
	s.waiting = append(s.waiting, ready)
	c.grant()
	return ready
}

// Await waits for the slot, and then until the part may be at risk. The caller must release the slot. Await returns nil if ctx is done.
func (s *Share) Await(ctx context.Context, ready chan struct{}, risk *atrisk.Risk) *Slot {
	select {
	case <-ready:
	case <-ctx.Done():
	}
	c := s.pool
	if s.leaveQueue(ready) {
		return nil
	}
	err := risk.Take(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || ctx.Err() != nil {
		risk.End()
		s.held--
		c.grant()
		return nil
	}
	s.addSending(+1)
	l := &Slot{Risk: risk, before: slices.Clone(s.rates)}
	c.slots = append(c.slots, l)
	return l
}

// leaveQueue removes a worker that still waits for a slot from the queue, and reports whether it did.
func (s *Share) leaveQueue(ready chan struct{}) bool {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	i := slices.Index(s.waiting, ready)
	if i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	return i >= 0
}

// Release releases a slot. stored is the number of bytes sent through it that the
// service has.
func (s *Share) Release(l *Slot, stored int64) {
	l.Risk.End()
	c := s.pool
	c.mu.Lock()
	defer c.mu.Unlock()
	s.addSending(-1)
	s.held--
	s.rates.addStored(l.before, stored)
	n := l.moved.Load()
	c.moved += n - l.reported
	if n > l.reported {
		c.busy++
	}
	c.slots = slices.DeleteFunc(c.slots, func(other *Slot) bool { return other == l })
	c.grant()
}

// Sending returns the number of connections of the file.
func (s *Share) Sending() int {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return s.sending
}

// observe calls tune after every interval, until stop is closed.
func (c *Pool) observe(stop <-chan struct{}, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last, held := time.Now(), c.held()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now, waited := time.Now(), c.held()
		iv := interval{took: now.Sub(last), failing: c.failing()}
		iv.limited = waited-held >= iv.took/10
		last, held = now, waited
		c.tune(iv)
	}
}

// tune passes an interval to the tuner, with the bytes that the slots moved, and grants slots
// up to its new limit.
func (c *Pool) tune(iv interval) {
	c.mu.Lock()
	defer c.mu.Unlock()
	iv.moved, iv.sending = c.moved, c.busy
	c.moved, c.busy = 0, 0
	for _, l := range c.slots {
		n := l.moved.Load()
		l.quiet++
		if n > l.reported {
			l.quiet = 0
			iv.moved += n - l.reported
			l.reported = n
		}
		if n > 0 && l.quiet < quietFor {
			iv.sending++
		}
	}
	iv.files = len(c.shares)
	// The response time may become known, or fall, while parts are sent.
	if c.tuner.setLong(c.long()); c.tuner.long {
		iv.left = c.left()
	}
	iv.bounded = slices.ContainsFunc(c.shares, func(s *Share) bool { return s.held > s.sending })
	iv.sending = min(iv.sending, max(len(c.slots), 1)) // a released slot and its successor count once
	c.tuner.observe(iv)
	c.grant()
}

// left returns how many bytes of the files are not committed, or -1 if that is not known. The caller holds c.mu.
func (c *Pool) left() (sum int64) {
	for _, s := range c.shares {
		if s.left == nil {
			return -1
		}
		sum += s.left()
	}
	return sum
}

// quietFor is the number of intervals without bytes after which a slot no longer
// counts as sending. On a slow link a slot moves 256 KiB only every few intervals.
const quietFor = 10

// measuredFor is how long the rate of a single connection is used, and the tuner's result that
// one connection suffices. The network may have changed later.
const measuredFor = 10 * time.Minute
