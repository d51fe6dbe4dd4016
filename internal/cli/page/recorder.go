// Package page writes the report of a run: a page of HTML with the throughput, the retries, and the slowest
// files and requests. It runs no script and loads nothing. What it keeps of a run is bounded.
package page

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/runlog"
	"gcsup/upload"
)

// The limits of what a report keeps. They bound its memory.
const (
	maxSlowest  = 20  // files
	maxFailed   = 100 // failed files
	maxEvents   = 200 // retries, restarts and resumes: the latest
	maxRequests = 50  // the slowest, the latest and the latest that failed
)

// Recorder records what a report shows. It is the slog.Handler of the library's lines for exchanges, of which
// only Enabled and Handle are called: the library adds no attributes to its logger.
type Recorder struct {
	slog.Handler
	start time.Time

	mu              sync.Mutex
	timeline        timeline
	waited, waitEnd time.Duration // waits at the same time count once

	events          list // retries, restarts and resumes
	failed, slowest list // files

	requests, failedRequests, slowRequests list
	sums                                   map[kind]*sum
}

// list is a list of which some rows are kept.
type list struct {
	Rows []row
	N    int // with the rows that are not kept
}

// row is a row of a table.
type row struct {
	took  time.Duration
	Class string
	Cells []string
}

// keepLatest adds a row, and keeps the latest n.
func (l *list) keepLatest(r row, n int) {
	l.N++
	l.Rows = append(l.Rows[max(len(l.Rows)+1-n, 0):], r)
}

// keepLongest adds a row, and keeps the n that took longest. Of those that took as long
// it keeps the first.
func (l *list) keepLongest(r row, n int) {
	l.N++
	if i, _ := slices.BinarySearchFunc(l.Rows, r, func(a, b row) int { return cmp.Compare(b.took, a.took-1) }); i < n {
		l.Rows = slices.Insert(l.Rows, i, r)
		l.Rows = l.Rows[:min(len(l.Rows), n)]
	}
}

// kind is a kind of requests.
type kind struct{ op, status string }

// sum is about the requests of a kind.
type sum struct {
	n             int
	sent          int64
	took, longest time.Duration
}

// New returns the recorder of a run that began at start.
func New(start time.Time) *Recorder {
	return &Recorder{Handler: slog.DiscardHandler, start: start, timeline: timeline{length: smallestBucket, active: map[int]result.Progress{}}, sums: map[kind]*sum{}}
}

// Note records an event of the file with that ID.
func (p *Recorder) Note(id int, source string, e upload.Event, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, is, wait := now.Sub(p.start), result.ProgressOf(e), ""
	was := p.timeline.active[id]
	if e.Kind == upload.Resumed {
		was.Sent = is.Sent // an earlier run sent it
	}
	p.timeline.move(at, id, was, is)
	b := p.timeline.bucket(at)
	switch e.Kind {
	case upload.Waiting:
		b.retries++
		p.waited += max(at+e.Delay-max(at, p.waitEnd), 0)
		p.waitEnd = max(p.waitEnd, at+e.Delay)
		for t := at; t <= at+e.Delay && t < at+time.Minute; t += p.timeline.length {
			p.timeline.bucket(t).waits = true
		}
	case upload.Restarted, upload.Discarded:
		b.lost = true
	case upload.Resumed, upload.Warning:
	default:
		return
	}
	if e.Delay > 0 {
		wait = readable.Elapsed(e.Delay).String()
	}
	p.events.keepLatest(row{0, e.Kind.String(), []string{e.Kind.String(), source, exit.Without(e.Cause, e.Err), readable.Elapsed(at).String(), readable.Bytes(is.Committed), wait}}, maxEvents)
}

// End records the outcome of a file.
func (p *Recorder) End(id int, file result.File, status result.Status, res *upload.Result, err error, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer delete(p.timeline.active, id)
	if res == nil {
		res = &upload.Result{}
	}
	name, size, rate := file.Source+" → "+file.Destination, readable.Bytes(res.Size), ""
	switch status {
	case result.OK:
		p.timeline.move(now.Sub(p.start), id, p.timeline.active[id], result.Progress{Sent: res.Size, Committed: res.Size})
		if res.Elapsed > 0 {
			rate = readable.Rate(float64(res.Size) / res.Elapsed.Seconds())
		}
	case result.Failed:
		p.failed.keepLongest(row{0, "failed", []string{name, exit.Text(err), size}}, maxFailed)
	default:
		return
	}
	p.slowest.keepLongest(row{res.Elapsed, string(status), []string{name, string(status), size, readable.Elapsed(res.Elapsed).String(), rate, fmt.Sprint(res.Retries)}}, maxSlowest)
}

// Enabled accepts the lines of exchanges.
func (p *Recorder) Enabled(_ context.Context, level slog.Level) bool { return level == slog.LevelDebug }

// Handle records an exchange.
func (p *Recorder) Handle(_ context.Context, r slog.Record) error {
	l, committed := runlog.ReadExchange(r), ""
	if l.Committed >= 0 {
		committed = readable.Bytes(l.Committed)
	}
	k := kind{l.Op, runlog.StatusText(l.Status)}
	line := row{l.Took, "", []string{l.Request(), cmp.Or(l.Source, l.Object), k.status, l.Decision(),
		readable.Elapsed(r.Time.Add(-l.Took).Sub(p.start)).String(), readable.Took(l.Took), readable.Bytes(l.From), readable.Bytes(l.Sent), committed}}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sums[k] == nil {
		p.sums[k] = &sum{}
	}
	s := p.sums[k]
	s.n, s.sent, s.took, s.longest = s.n+1, s.sent+l.Sent, s.took+l.Took, max(s.longest, l.Took)
	p.requests.keepLatest(line, maxRequests)
	p.slowRequests.keepLongest(line, maxRequests)
	if l.Err != "" || l.Status >= 400 {
		p.failedRequests.keepLatest(line, maxRequests)
	}
	return nil
}
