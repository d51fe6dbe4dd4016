package page

import "time"

const (
	maxBuckets     = 480                    // if there are more, their length doubles
	smallestBucket = 500 * time.Millisecond // progress is reported a few times per second

	shortestInterval = 50 * time.Millisecond // of which a rate has a meaning
)

// timeline is the course of a run: what was sent, stored and retried when. Its memory does
// not grow with the run.
type timeline struct {
	length  time.Duration // of a bucket
	buckets []bucketSums
	active  map[int]offsets // of the active files, by ID
	durable int64
}

func newTimeline() timeline { return timeline{length: smallestBucket, active: map[int]offsets{}} }

// bucketSums has the sums of one interval of the run, a bucket.
type bucketSums struct {
	sent    int64
	durable int64 // at its end; valid if seen
	seen    bool
	retries int
	losses  int // restarts after a lost session
	waits   int // waits that overlap the bucket
}

type offsets struct{ sent, committed int64 }

// bucket returns the bucket of a time.
func (t *timeline) bucket(at time.Duration) *bucketSums {
	i := int(max(at, 0) / t.length)
	for i >= maxBuckets {
		t.halve()
		i = int(at / t.length)
	}
	for len(t.buckets) <= i {
		t.buckets = append(t.buckets, bucketSums{})
	}
	return &t.buckets[i]
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
		next := interval{from: time.Duration(i) * t.length, to: time.Duration(i+1) * t.length, sent: b.sent}
		switch {
		case next.from > elapsed:
			return all
		case next.to <= elapsed:
			all = append(all, next)
		case i > 0:
			last := &all[len(all)-1]
			last.to, last.sent = elapsed, last.sent+next.sent
		default:
			next.to = max(elapsed, shortestInterval)
			all = append(all, next)
		}
	}
	return all
}

// halve doubles the length of the buckets.
func (t *timeline) halve() {
	t.length *= 2
	for i := range t.buckets {
		b := t.buckets[i]
		if i%2 == 0 {
			t.buckets[i/2] = b
			continue
		}
		to := &t.buckets[i/2]
		to.sent += b.sent
		to.retries += b.retries
		to.losses += b.losses
		to.waits = max(to.waits, b.waits)
		if b.seen {
			to.durable, to.seen = b.durable, true
		}
	}
	t.buckets = t.buckets[:(len(t.buckets)+1)/2]
}

// move records the new offsets of a file.
func (t *timeline) move(at time.Duration, id int, was, is offsets) {
	b := t.bucket(at)
	b.sent += max(is.sent-was.sent, 0)
	t.durable += is.committed - was.committed
	b.durable, b.seen = t.durable, true
	t.active[id] = is
}
