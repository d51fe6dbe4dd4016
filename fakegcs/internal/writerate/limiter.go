// Package writerate limits the rate of writes to each bucket of an emulator, as the service does
// (https://cloud.google.com/storage/docs/request-rate).
package writerate

import (
	"sync"
	"time"
)

// A Verdict is the outcome of a write.
type Verdict int

const (
	Accepted  Verdict = iota
	TooFast           // the bucket has one range of names, which gets too many writes
	TooUneven         // one of several ranges gets too many writes
)

// A Limiter limits the writes to each range of the names of a bucket. A bucket has one range at
// first. A range that had load for long enough is divided in two. A nil Limiter accepts all.
type Limiter struct {
	perSecond  float64
	splitAfter time.Duration

	mu      sync.Mutex
	buckets map[string]*bucket
}

// New returns a Limiter with a number of writes per second to each range, and the time after
// which a range with load is divided.
func New(perSecond int, splitAfter time.Duration) *Limiter {
	return &Limiter{perSecond: float64(perSecond), splitAfter: splitAfter, buckets: map[string]*bucket{}}
}

// Admit decides about a write of an object.
func (l *Limiter) Admit(now time.Time, bucketName, object string) Verdict {
	if l == nil {
		return Accepted
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[bucketName]
	if b == nil {
		b = &bucket{ranges: []*keyRange{newKeyRange("", now, l.perSecond)}}
		l.buckets[bucketName] = b
	}
	i := b.find(object)
	r := b.ranges[i]
	if r.pass(now, l.perSecond); r.loaded >= l.splitAfter {
		b.split(i, now)
		i = b.find(object)
		r = b.ranges[i]
	}
	r.note(object)
	switch {
	case r.credit >= 1:
		r.credit--
		return Accepted
	case len(b.ranges) == 1:
		return TooFast
	}
	return TooUneven
}
