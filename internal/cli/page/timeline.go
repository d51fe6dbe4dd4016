package page

import (
	"time"

	"gcsup/internal/cli/result"
)

const (
	maxBuckets     = 480                    // if there are more, their length doubles
	smallestBucket = 500 * time.Millisecond // progress is reported a few times per second

	shortestInterval = 50 * time.Millisecond // of which a rate has a meaning
)

// timeline is the course of a run: what was sent, stored and retried when. Its memory does
// not grow with the run.
type timeline struct {
	length    time.Duration // of a bucket
	buckets   []bucketSums
	active    map[int]result.Progress // of the active files, by ID
	committed int64
}

// bucketSums has the sums of one interval of the run, a bucket.
type bucketSums struct {
	sent      int64
	committed int64 // at its end; valid if seen
	seen      bool
	retries   int
	lost      bool // a session
	waits     bool
}

// bucket returns the bucket of a time.
func (t *timeline) bucket(at time.Duration) *bucketSums {
	i := int(max(at, 0) / t.length)
	for ; i >= maxBuckets; i /= 2 {
		t.halve()
	}
	for len(t.buckets) <= i {
		t.buckets = append(t.buckets, bucketSums{})
	}
	return &t.buckets[i]
}

// halve doubles the length of the buckets.
func (t *timeline) halve() {
	t.length *= 2
	halved := make([]bucketSums, (len(t.buckets)+1)/2)
	for i, b := range t.buckets {
		to := &halved[i/2]
		to.sent += b.sent
		to.retries += b.retries
		to.lost, to.waits = to.lost || b.lost, to.waits || b.waits
		if b.seen {
			to.committed, to.seen = b.committed, true
		}
	}
	t.buckets = halved
}

// move records the new offsets of a file.
func (t *timeline) move(at time.Duration, id int, was, is result.Progress) {
	b := t.bucket(at)
	b.sent += max(is.Sent-was.Sent, 0)
	t.committed += is.Committed - was.Committed
	b.committed, b.seen = t.committed, true
	t.active[id] = is
}

// interval is a part of the run.
type interval struct {
	from, to time.Duration
	sent     int64
}

// rate returns the bytes sent per second.
func (i interval) rate() float64 { return float64(i.sent) / (i.to - i.from).Seconds() }

// intervals returns what was sent up to elapsed. A last bucket that is not complete is joined
// with the one before it: it would have too high a rate, because it has bytes that were sent
// before it began and reported a moment later.
func (t *timeline) intervals(elapsed time.Duration) (all []interval) {
	for i, b := range t.buckets {
		from := time.Duration(i) * t.length
		switch to := from + t.length; {
		case from > elapsed:
			return all
		case to > elapsed && i > 0:
			last := &all[i-1]
			last.to, last.sent = elapsed, last.sent+b.sent
		default:
			all = append(all, interval{from, min(to, max(elapsed, shortestInterval)), b.sent})
		}
	}
	return all
}
