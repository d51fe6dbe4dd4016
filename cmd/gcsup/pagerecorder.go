package main

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gcsup/upload"
)

// What a report keeps at most. Its memory does not grow with the run.
const (
	maxBuckets     = 480                    // of time; if there are more, their length doubles
	maxSlowest     = 20                     // files
	maxNamed       = 100                    // failed files
	maxMarks       = 200                    // retries, restarts and resumes: the latest
	maxExchanges   = 50                     // requests: the slowest, the latest and the latest that failed
	maxSums        = 200                    // kinds of requests
	smallestBucket = 500 * time.Millisecond // progress is reported a few times per second
)

// pageRecorder records what --report shows. It is also the slog.Handler that
// receives the library's line for each exchange.
type pageRecorder struct {
	mu      sync.Mutex
	start   time.Time
	length  time.Duration // of a bucket
	buckets []bucket
	active  map[int]offsets
	durable int64

	marks    []mark
	dropped  int // marks that were not kept
	slowest  []fileOutcome
	failed   []fileOutcome
	failures int

	sums                   map[exchangeKind]*exchangeSum
	slow, latest, unlucky  []exchangeLine
	requests, unluckyCount int
}

// bucket sums up a part of the run.
type bucket struct {
	sent    int64
	durable int64 // at its end; valid if seen
	seen    bool
	retries int
	losses  int // sessions that were restarted
	waits   int // waits that overlap the bucket
}

type offsets struct{ sent, committed int64 }

// mark is an event that the report lists.
type mark struct {
	at        time.Duration
	kind      string
	source    string
	committed int64
	delay     time.Duration
	cause     string
}

type fileOutcome struct {
	source, destination, status string
	size                        int64
	elapsed                     time.Duration
	retries                     int
	err                         string
}

type exchangeKind struct {
	op     string
	status int64 // 0 if there was no reply
}

type exchangeSum struct {
	n             int
	sent          int64
	took, longest time.Duration
}

type exchangeLine struct {
	at, took     time.Duration
	op           string
	status       int64
	offset, sent int64
	held         int64
	err          string
}

func newPageRecorder(start time.Time) *pageRecorder {
	return &pageRecorder{start: start, length: smallestBucket, active: map[int]offsets{}, sums: map[exchangeKind]*exchangeSum{}}
}

// bucket returns the bucket of a time.
func (p *pageRecorder) bucket(at time.Duration) *bucket {
	i := int(max(at, 0) / p.length)
	for i >= maxBuckets {
		p.halve()
		i = int(at / p.length)
	}
	for len(p.buckets) <= i {
		p.buckets = append(p.buckets, bucket{})
	}
	return &p.buckets[i]
}

// halve doubles the length of the buckets.
func (p *pageRecorder) halve() {
	p.length *= 2
	for i := range p.buckets {
		b := p.buckets[i]
		if i%2 == 0 {
			p.buckets[i/2] = b
			continue
		}
		to := &p.buckets[i/2]
		to.sent += b.sent
		to.retries += b.retries
		to.losses += b.losses
		to.waits = max(to.waits, b.waits)
		if b.seen {
			to.durable, to.seen = b.durable, true
		}
	}
	p.buckets = p.buckets[:(len(p.buckets)+1)/2]
}

// note records an event of the file with that ID.
func (p *pageRecorder) note(id int, source string, e upload.Event, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, is := now.Sub(p.start), shown(e)
	was := p.active[id]
	if e.Kind == upload.Resumed {
		was.sent = is.sent // an earlier run sent it
	}
	p.move(at, id, was, offsets{is.sent, is.committed})
	b := p.bucket(at)
	switch e.Kind {
	case upload.Waiting:
		b.retries++
		for t := at; t <= at+e.Delay && t < at+time.Minute; t += p.length {
			p.bucket(t).waits++
		}
	case upload.Restarted, upload.Discarded:
		b.losses++
	case upload.Resumed, upload.Warning:
	default:
		return
	}
	if len(p.marks) == maxMarks {
		p.marks = slices.Delete(p.marks, 0, 1)
		p.dropped++
	}
	p.marks = append(p.marks, mark{at, eventType(e.Kind), source, is.committed, e.Delay, e.Cause})
}

// move records the new offsets of a file.
func (p *pageRecorder) move(at time.Duration, id int, was, is offsets) {
	b := p.bucket(at)
	b.sent += max(is.sent-was.sent, 0)
	p.durable += is.committed - was.committed
	b.durable, b.seen = p.durable, true
	p.active[id] = is
}

// end records the outcome of a file.
func (p *pageRecorder) end(id int, t task, status string, res *upload.Result, err error, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := fileOutcome{source: t.source, destination: t.destination, status: status}
	if res != nil {
		f.size, f.elapsed, f.retries = max(res.Size, 0), res.Elapsed, res.Retries
		if status == statusOK {
			p.move(now.Sub(p.start), id, p.active[id], offsets{res.Size, res.Size})
		}
	}
	delete(p.active, id)
	if status == statusFailed {
		f.err = err.Error()
		p.failures++
		if len(p.failed) < maxNamed {
			p.failed = append(p.failed, f)
		}
	}
	if status == statusOK || status == statusFailed {
		p.slowest = keepLongest(p.slowest, f, maxSlowest, func(f fileOutcome) time.Duration { return f.elapsed })
	}
}

// keepLongest adds v to the n longest, sorted from the longest on.
func keepLongest[T any](list []T, v T, n int, length func(T) time.Duration) []T {
	if len(list) == n && length(v) <= length(list[n-1]) {
		return list
	}
	i, _ := slices.BinarySearchFunc(list, length(v), func(e T, l time.Duration) int { return cmp.Compare(l, length(e)) })
	list = slices.Insert(list, i, v)
	return list[:min(len(list), n)]
}

// keepLatest adds v to the n latest.
func keepLatest[T any](list []T, v T, n int) []T {
	if len(list) == n {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, v)
}

// Enabled accepts the lines of exchanges.
func (p *pageRecorder) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs returns p: the library adds no attributes to its logger.
func (p *pageRecorder) WithAttrs([]slog.Attr) slog.Handler { return p }

// WithGroup returns p.
func (p *pageRecorder) WithGroup(string) slog.Handler { return p }

// Handle records an exchange.
func (p *pageRecorder) Handle(_ context.Context, r slog.Record) error {
	if r.Level != slog.LevelDebug {
		return nil
	}
	l := exchangeLine{op: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "status":
			l.status = a.Value.Int64()
		case "offset":
			l.offset = a.Value.Int64()
		case "sent":
			l.sent = a.Value.Int64()
		case "held":
			l.held = a.Value.Int64()
		case "took":
			l.took = a.Value.Duration()
		case "err":
			if err, ok := a.Value.Any().(error); ok && err != nil {
				l.err = err.Error()
			}
		}
		return true
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	l.at = r.Time.Sub(p.start) - l.took
	p.requests++
	kind := exchangeKind{l.op, l.status}
	sum := p.sums[kind]
	if sum == nil {
		if len(p.sums) == maxSums {
			kind = exchangeKind{op: "other"}
		}
		if sum = p.sums[kind]; sum == nil {
			sum = &exchangeSum{}
			p.sums[kind] = sum
		}
	}
	sum.n++
	sum.sent += l.sent
	sum.took += l.took
	sum.longest = max(sum.longest, l.took)
	p.slow = keepLongest(p.slow, l, maxExchanges, func(l exchangeLine) time.Duration { return l.took })
	p.latest = keepLatest(p.latest, l, maxExchanges)
	if l.err != "" || l.status >= 400 {
		p.unluckyCount++
		p.unlucky = keepLatest(p.unlucky, l, maxExchanges)
	}
	return nil
}
