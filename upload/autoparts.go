package upload

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"gcsup/chunk"
	"gcsup/session"
)

const (
	// autoMinFile is the minimum size of a file that AutoParts sends in parts. A smaller
	// file takes only seconds on any link that has room for more connections.
	autoMinFile = 150 << 20

	// autoMinPart is the minimum size of a part of AutoParts. The bytes of a smaller part
	// take less time than its requests on a long link.
	autoMinPart = 16 << 20

	// autoConnections is the default maximum of connections of AutoParts.
	autoConnections = 32

	// connectionMemory is the part of Options.Memory that one connection needs. Its
	// buffers take a quarter of it.
	connectionMemory = 4 << 20

	// lowLimit is a rate limit, in bytes per second, that a single connection reaches.
	lowLimit = 16 << 20

	// oneSufficesFor is how long the tuner's result that one connection suffices is used.
	// The network may have changed later.
	oneSufficesFor = 10 * time.Minute
)

// AutoParts sends a file in parts, like [InParts], if several connections may be
// faster than one. It chooses the number of connections: it begins with one, and adds
// more as long as the total rate rises. All files of an Uploader share the
// connections.
//
// maxConnections bounds their number, at most 256; 0 is 32. There is at most one for
// each 4 MiB of [Options].Memory. The buffers of each connection take about 1 MiB. A
// multipart upload also keeps a part of at least 16 MiB for each connection. It reads
// parts that do not fit into Memory twice.
//
// A file is sent over one connection, and the event [Undivided] has the reason, if
//
//   - the file has less than 150 MiB (without the event),
//   - the service answers within 3 ms, and the first 8 MiB are sent at 64 MiB/s or more,
//   - a rate limit of at most 16 MiB/s is set, but not 0,
//   - several connections were no faster for a file in the last ten minutes,
//   - the caller may not read the object at the destination, or
//   - no [JoinBy] supports its settings. For [ByCompose], the bucket and the permissions must
//     also be readable and suit temporary objects.
func AutoParts(maxConnections int) *Parts {
	p := InParts(cmp.Or(maxConnections, autoConnections), autoMinPart)
	p.auto, p.minFile = true, autoMinFile
	return p
}

// partSize returns the size of the parts of a file of size bytes, or 0 if it is not divided.
func (p *Parts) partSize(size int64) int64 {
	if !p.auto {
		return partSize(size, p.connections, p.minPart)
	}
	if size < p.minFile || p.connections < 2 {
		return 0
	}
	// Make parts that one compose can join, unless they would be very large.
	part := chunk.Ceil(max(size/(autoConnections*partsPerConnection), min(size/session.ComposeMax, largePart), p.minPart))
	if part >= size {
		return 0
	}
	return part
}

// largePart is the size of a part beyond which more parts are better than one compose.
const largePart = 64 << 20

// partsShared is the shared state of all files of an Uploader that are sent in parts.
type partsShared struct {
	fastestReply fastestReply
	nearRate     atomic.Int64 // bytes per second of a single connection to a near service; 0 until it is known

	mu          sync.Mutex
	auto        *connPool // nil until it is needed
	oneSufficed time.Time // when the tuner last found that one connection suffices
	buckets     map[string]*bucketFacts
}

// connections returns the pool for a file. With AutoParts all files share one, and
// otherwise each has its own.
func (u *Uploader) connections() *connPool {
	parts, s := u.opts.Parallel, u.parts
	if !parts.auto {
		return &connPool{tuner: tuner{level: max(parts.connections, 1)}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.auto == nil {
		limit := max(min(parts.connections, int(u.opts.Memory/connectionMemory)), 1)
		s.auto = &connPool{
			rate: u.opts.RateLimit, failing: u.opts.Gate.Closed, tuned: true, tuner: newTuner(limit),
			every: func() time.Duration { return min(max(tuneEvery, 4*s.fastestReply.get()), time.Second) },
		}
	}
	return s.auto
}

// tuneEvery is the minimum length of an interval that the tuner observes. On a link
// with long round trips an interval is longer, so that it has several of them.
const tuneEvery = 100 * time.Millisecond

// whyUndivided returns why several connections would probably not be faster than one, or nil.
func (u *Uploader) whyUndivided() error {
	if !u.opts.Parallel.auto {
		return nil
	}
	suffices, s := u.connections().oneSuffices(), u.parts
	s.mu.Lock()
	recent := !s.oneSufficed.IsZero() && time.Since(s.oneSufficed) < oneSufficesFor
	s.mu.Unlock()
	switch {
	case suffices && recent:
		return reason{text: "more connections did not raise the rate of an earlier file"}
	case u.opts.RateLimit.low():
		return reason{text: "one connection reaches the rate limit"}
	}
	return s.whyNear()
}

// low reports whether a single connection reaches the limit. A limit of 0 is not low,
// because the limit after the pause is not known.
func (l *RateLimit) low() bool {
	if l == nil {
		return false
	}
	limit := l.Limit()
	return limit > 0 && limit <= lowLimit
}

// noteTuner records after a file whether the tuner found that one connection suffices.
func (u *Uploader) noteTuner(c *connPool) {
	if c.oneSuffices() {
		u.parts.mu.Lock()
		u.parts.oneSufficed = time.Now()
		u.parts.mu.Unlock()
	}
}
