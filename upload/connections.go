package upload

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// connections are those over which the files of an Uploader send their parts. With a
// tuner, it chooses how many there are for all files together. Without, each file has its
// own, and their number is fixed.
type connections struct {
	limiter *sharedLimiter // nil if there is no limit
	failing func() bool    // reports whether the service fails
	every   func() time.Duration

	mu     sync.Mutex
	tuned  bool
	tuner  tuner
	fixed  int // without a tuner
	shares []*share
	lanes  []*lane // that send
	stop   chan struct{}
	moved  int64 // by lanes that ended in this interval
	busy   int   // how many of them moved something
}

// lane is one connection that sends a part.
type lane struct {
	moved    atomic.Int64 // bytes that were handed to the network
	reported int64        // of these, those of earlier intervals
	quiet    int          // intervals since some were
	before   pace         // of its share, when it began
}

// share are the connections of one file.
type share struct {
	of      *connections
	held    int             // lanes
	waiting []chan struct{} // workers that wait for a lane
	pace    pace
	since   time.Time // when pace was last brought up to date
}

// enter returns the share of another file. The caller must call leave.
func (c *connections) enter() *share {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &share{of: c, since: time.Now()}
	c.shares = append(c.shares, s)
	if c.tuned && c.stop == nil {
		c.tuner.resume()
		c.stop = make(chan struct{})
		go c.observe(c.stop, c.every())
	}
	return s
}

// leave ends the share of a file, whose workers have ended.
func (s *share) leave() {
	c := s.of
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shares = slices.DeleteFunc(c.shares, func(other *share) bool { return other == s })
	if len(c.shares) == 0 && c.stop != nil {
		close(c.stop)
		c.stop = nil
	}
	c.admit()
}

// level returns how many lanes there may be.
func (c *connections) level() int {
	if c.tuned {
		return c.tuner.level
	}
	return c.fixed
}

// admit gives free lanes to workers that wait: first to the file that has the fewest. A
// file that has none gets one in any case, so that no file waits for the end of a part of
// another. c.mu is held.
func (c *connections) admit() {
	for {
		var next *share
		held := 0
		for _, s := range c.shares {
			held += s.held
			if len(s.waiting) > 0 && (next == nil || s.held < next.held) {
				next = s
			}
		}
		if next == nil || next.held > 0 && held >= c.level() {
			return
		}
		close(next.waiting[0])
		next.waiting = next.waiting[1:]
		next.hold(+1)
	}
}

// hold changes the number of lanes. s.of.mu is held.
func (s *share) hold(more int) {
	now := time.Now()
	s.pace.pass(s.held, now.Sub(s.since))
	s.since, s.held = now, s.held+more
}

// acquire waits for a lane. The caller must release it. It returns nil if ctx is done.
func (s *share) acquire(ctx context.Context) *lane {
	c := s.of
	ready := make(chan struct{})
	c.mu.Lock()
	s.waiting = append(s.waiting, ready)
	c.admit()
	c.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(s.waiting, ready); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return nil
	}
	l := &lane{before: slices.Clone(s.pace)}
	c.lanes = append(c.lanes, l)
	return l
}

// release ends the use of a lane. stored is how many bytes the service has of what was sent.
func (s *share) release(l *lane, stored int64) {
	c := s.of
	c.mu.Lock()
	defer c.mu.Unlock()
	s.hold(-1)
	s.pace.store(l.before, stored)
	n := l.moved.Load()
	c.moved += n - l.reported
	if n > l.reported {
		c.busy++
	}
	c.lanes = slices.DeleteFunc(c.lanes, func(other *lane) bool { return other == l })
	c.admit()
}

// using returns how many lanes the file has.
func (s *share) using() int {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.held
}

// observe lets the tuner see every interval, until stop is closed.
func (c *connections) observe(stop <-chan struct{}, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last, held := time.Now(), c.limiter.held()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now, waited := time.Now(), c.limiter.held()
		iv := interval{took: now.Sub(last), refused: c.failing()}
		iv.limited = waited-held >= iv.took/10
		last, held = now, waited
		c.tune(iv)
	}
}

// tune adds what the lanes moved to an interval, and follows the tuner.
func (c *connections) tune(iv interval) {
	c.mu.Lock()
	defer c.mu.Unlock()
	iv.moved, iv.sending = c.moved, c.busy
	c.moved, c.busy = 0, 0
	for _, l := range c.lanes {
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
	iv.sending = min(iv.sending, max(len(c.lanes), 1)) // a lane that ended, and the next one of its connection
	c.tuner.observe(iv)
	c.admit()
}

// quietFor is how many intervals a lane may move nothing and is still one that sends: on
// a slow link it moves a piece in each second.
const quietFor = 10

// reached describes what the connections of a file reached.
func (s *share) reached() (connections int, rate, one float64) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.pace.reached()
}
