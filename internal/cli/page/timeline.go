package page

import (
	"fmt"
	"time"

	"gcsup/internal/cli/readable"
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
	length  time.Duration // of a bucket
	buckets []bucketSums
	active  map[int]result.Progress // of the active files, by ID
	durable int64
}

// bucketSums has the sums of one interval of the run, a bucket.
type bucketSums struct {
	sent    int64
	durable int64 // at its end; valid if seen
	seen    bool
	retries int
	lost    bool // a session
	waits   bool
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
	for i, b := range t.buckets {
		to := &t.buckets[i/2]
		if i%2 == 0 {
			*to = b
			continue
		}
		to.sent += b.sent
		to.retries += b.retries
		to.lost, to.waits = to.lost || b.lost, to.waits || b.waits
		if b.seen {
			to.durable, to.seen = b.durable, true
		}
	}
	t.buckets = t.buckets[:(len(t.buckets)+1)/2]
}

// move records the new offsets of a file.
func (t *timeline) move(at time.Duration, id int, was, is result.Progress) {
	b := t.bucket(at)
	b.sent += max(is.Sent-was.Sent, 0)
	t.durable += is.Committed - was.Committed
	b.durable, b.seen = t.durable, true
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
		next := interval{from: time.Duration(i) * t.length, to: time.Duration(i+1) * t.length, sent: b.sent}
		if next.from > elapsed {
			break
		}
		if next.to > elapsed && i > 0 {
			last := &all[i-1]
			last.to, last.sent = elapsed, last.sent+next.sent
			break
		}
		next.to = min(next.to, max(elapsed, shortestInterval))
		all = append(all, next)
	}
	return all
}

// The panels of the chart, in units of the drawing.
const left, right, height = 80.0, 950.0, 150.0

// chart is the throughput and the durable bytes over time, in two panels.
type chart struct {
	Fastest, Stored string  // the labels of the vertical axes
	Waits, Marks    []shape // in both panels
	Sent            []shape
	Durable         string // a path
	Times           []shape
}

// shape is a part of the chart. The class of a time is where it is anchored.
type shape struct {
	Class      string
	X, Y, W, H float64
	Title      string
}

// draw returns the chart of a run that lasted for elapsed.
func (t *timeline) draw(elapsed time.Duration) (c chart) {
	buckets := t.buckets[:min(int(elapsed/t.length)+1, len(t.buckets))]
	span := max(elapsed, t.length)
	x := func(at time.Duration) float64 { return left + min(at.Seconds()/span.Seconds(), 1)*(right-left) }
	fastest, durable, intervals := 0.0, int64(0), t.intervals(elapsed)
	for _, in := range intervals {
		fastest = max(fastest, in.rate())
	}
	for _, b := range buckets {
		durable = max(durable, b.durable)
	}
	c.Fastest, c.Stored = readable.Rate(fastest), readable.Bytes(durable)
	for _, in := range intervals {
		if h := in.rate() / fastest * height; in.sent > 0 {
			c.Sent = append(c.Sent, shape{"sent", x(in.from), height - h, max(x(in.to)-x(in.from), 1), h, readable.Elapsed(in.from).String() + ": " + readable.Rate(in.rate())})
		}
	}
	for i, b := range buckets {
		at, to := time.Duration(i)*t.length, x(time.Duration(i+1)*t.length)
		if b.waits {
			c.Waits = append(c.Waits, shape{"wait", x(at), 0, to - x(at), height, ""})
		}
		if b.retries > 0 {
			c.Marks = append(c.Marks, shape{"retry", x(at), height - 8, 0, 14, readable.Elapsed(at).String() + ": " + readable.Plural(b.retries, "retry", "retries")})
		}
		if b.lost {
			c.Marks = append(c.Marks, shape{"loss", x(at), 0, 0, height, readable.Elapsed(at).String() + ": started over"})
		}
		if b.seen && durable > 0 {
			c.Durable += fmt.Sprintf("H%.1fV%.1f", to, height-float64(max(b.durable, 0))/float64(durable)*height)
		}
	}
	for i, anchor := range []string{"start", "middle", "middle", "middle", "end"} {
		at := span * time.Duration(i) / 4
		c.Times = append(c.Times, shape{Class: anchor, X: x(at), Title: readable.Elapsed(at).String()})
	}
	return c
}
