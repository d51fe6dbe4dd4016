package upload

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

const (
	// autoFrom is the least size of a file that AutoParts sends in parts. That of a
	// smaller one takes seconds on any link that has room for more connections.
	autoFrom = 150 << 20

	// autoLeast is the least size of a part of AutoParts. A smaller one is sent in less
	// time than its requests take on a long link.
	autoLeast = 16 << 20

	// autoConnections is how many connections AutoParts uses at most, if its caller does
	// not choose.
	autoConnections = 32

	// connectionMemory is the part of Options.Memory that allows one connection. Its
	// buffers take a quarter of it.
	connectionMemory = 4 << 20

	// near is the time until a reply below which the service is so near that a single
	// connection is fast enough.
	near = 3 * time.Millisecond

	// nearReplies is how many replies show that.
	nearReplies = 3

	// proof is how many bytes show whether the single connection to a near service is
	// fast, and fast is the rate in bytes per second that it must reach.
	proof = 8 << 20
	fast  = 64 << 20

	// slowLimit is a rate limit in bytes per second that a single connection reaches.
	slowLimit = 16 << 20

	// sufficesFor is how long it is believed that more connections are useless.
	sufficesFor = 10 * time.Minute
)

// AutoParts sends a file in parts, as [InParts] does, if several connections may be faster
// than one, and chooses their number. It sends a file over one connection if
//
//   - it has less than 150 MiB,
//   - the service answers within 3 ms, and the first 8 MiB are sent at 64 MiB/s or more,
//   - a rate limit of at most 16 MiB/s is set,
//   - an earlier file of the last ten minutes was not faster over several connections,
//   - its settings, those of the bucket or the permissions do not suit temporary objects,
//     or cannot be read.
//
// The event [Undivided] has the reason. Otherwise it begins with one connection, and adds
// more as long as the total rate rises. All files of an Uploader share the connections.
// most bounds them; 0 is 32. Each needs about 1 MiB of memory, and all together at most
// a quarter of [Options].Memory.
func AutoParts(most int) *Parts {
	p := InParts(cmp.Or(most, autoConnections), autoLeast)
	p.auto, p.from = true, autoFrom
	return p
}

// partSize returns the size of the parts of a file, or 0 if it is not divided.
func (p *Parts) partSize(size int64) int64 {
	if !p.auto {
		return partSize(size, p.connections, p.least)
	}
	if size < p.from || p.connections < 2 {
		return 0
	}
	// One compose, or more if the parts would be very large.
	part := chunk.Ceil(max(size/(autoConnections*partsPerConnection), min(size/session.ComposeMax, largePart), p.least))
	if part >= size {
		return 0
	}
	return part
}

// largePart is the size of a part beyond which more parts are better than one compose.
const largePart = 64 << 20

// partsShared is what the files that an Uploader sends in parts share.
type partsShared struct {
	fastest fastest
	proven  atomic.Int64 // rate of a single connection to a near service; 0 before it is known

	mu       sync.Mutex
	auto     *connections // nil before it is needed
	suffices time.Time    // when a file was last sent for which one connection was enough
	buckets  map[string]*bucketFacts
}

// connections returns the connections of a file: those that all files share, or its own.
func (u *Uploader) connections() *connections {
	parts, s := u.opts.Parallel, u.parts
	if !parts.auto {
		return &connections{fixed: max(parts.connections, 1)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.auto == nil {
		most := max(min(parts.connections, int(u.opts.Memory/connectionMemory)), 1)
		s.auto = &connections{
			limiter: u.limiter, failing: u.opts.Gate.Closed, tuned: true, tuner: newTuner(most),
			every: func() time.Duration { return min(max(tuneEvery, 4*s.fastest.get()), time.Second) },
		}
	}
	return s.auto
}

// tuneEvery is the least length of an interval that a tuner judges. An interval has some
// round trips.
const tuneEvery = 100 * time.Millisecond

// whyOne returns why several connections would not be faster, as far as is known, or "".
func (u *Uploader) whyOne() string {
	if !u.opts.Parallel.auto {
		return ""
	}
	c, s := u.connections(), u.parts
	c.mu.Lock()
	suffices := c.tuner.suffices()
	c.mu.Unlock()
	s.mu.Lock()
	recent := !s.suffices.IsZero() && time.Since(s.suffices) < sufficesFor
	s.mu.Unlock()
	switch {
	case suffices && recent:
		return "more connections did not raise the rate of an earlier file"
	case u.limiter != nil && float64(u.limiter.Limit()) <= slowLimit:
		return "one connection reaches the rate limit"
	}
	return s.whyNear()
}

// whyNear returns that the service is near and does not limit each connection, as far as is
// known, or "".
func (s *partsShared) whyNear() string {
	fastest, rate := s.fastest.get(), s.proven.Load()
	if fastest == 0 || fastest >= near || rate > 0 && rate < fast {
		return ""
	}
	return fmt.Sprintf("the service answers within %v, so that one connection is fast enough", fastest.Round(10*time.Microsecond))
}

// unproven reports whether why says that the service is near, and it is not known whether it
// limits each connection.
func (s *partsShared) unproven(why string) bool {
	near := s.whyNear()
	return near != "" && strings.HasSuffix(why, near) && s.proven.Load() == 0
}

// slowConnection is the error of a first request that shows that a single connection is
// slow, although the service is near.
type slowConnection struct{ rate int64 }

func (e *slowConnection) Error() string {
	return fmt.Sprintf("one connection reaches only %.1f MiB/s, so that the file is sent in parts", float64(e.rate)/(1<<20))
}

// prove judges the first request of a file that is sent over one connection because the
// service is near. why is the reason.
func (j *job) prove(why string) {
	limiter := j.u.limiter
	held := limiter.held()
	j.transfer.prove = func(n int64, took time.Duration) error {
		rate := int64(math.MaxInt64)
		limited := limiter.held()-held >= took/10
		if took > 0 && n >= proof/2 && !limited { // else it shows no rate
			rate = int64(float64(n) / took.Seconds())
		}
		if j.u.parts.proven.Store(rate); rate < fast {
			return &slowConnection{rate}
		}
		j.sentAlone(why)
		return nil
	}
}

// divide starts over in parts after the first request showed that one connection is slow.
// The saved upload is deleted before its session, which a crash in between leaves to expire.
func (j *job) divide(ctx context.Context, c conversation, slow *slowConnection) error {
	j.events.post(Event{Kind: Discarded, Cause: slow.Error()})
	if j.journal != nil {
		if err := j.journal.discard(); err != nil {
			return err
		}
		j.transfer.record = unrecorded{}
	}
	if r, ok := c.(*run); ok {
		j.transfer.drop(ctx, r.uri)
	}
	j.unresume()
	j.file.sum = chunk.NewPrefixCRC(chunk.Checkpoint{})
	return j.fresh(ctx)
}

// learned notes after a file what its connections showed.
func (u *Uploader) learned(c *connections) {
	c.mu.Lock()
	suffices := c.tuned && c.tuner.suffices()
	c.mu.Unlock()
	if suffices {
		u.parts.mu.Lock()
		u.parts.suffices = time.Now()
		u.parts.mu.Unlock()
	}
}

// fastest is the shortest time until a reply of the service, in nanoseconds; 0 before
// there is one.
type fastest struct{ ns, replies atomic.Int64 }

func (f *fastest) get() time.Duration { return time.Duration(f.ns.Load()) }

func (f *fastest) note(d time.Duration) {
	defer f.replies.Add(1)
	for {
		was := f.ns.Load()
		if was > 0 && was <= int64(d) || f.ns.CompareAndSwap(was, max(int64(d), 1)) {
			return
		}
	}
}

// timing notes how long the service takes to answer requests that carry no data.
func timing(f *fastest) link {
	return func(next doer) doer {
		return func(ctx context.Context, x exchange) session.Reply {
			began := time.Now()
			r := next(ctx, x)
			if x.body == nil && (r.Status >= 200 && r.Status < 300 || r.Status == 404) {
				f.note(time.Since(began))
			}
			return r
		}
	}
}
