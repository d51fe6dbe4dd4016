// Package page writes the report of a run: a page of HTML with the throughput, the retries, and the slowest
// files and requests. It runs no script and loads nothing. What it keeps of a run is bounded.
package page

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/result"
	"gcsup/upload"
)

// The limits of what a report keeps. They bound its memory.
const (
	maxSlowest = 20  // files
	maxNamed   = 100 // failed files
	maxMarks   = 200 // retries, restarts and resumes: the latest
)

// Recorder records what a report shows.
type Recorder struct {
	start     time.Time
	exchanges exchangeRecorder

	mu       sync.Mutex
	timeline timeline
	waits    waits
	marks    []mark
	dropped  int // marks that were not kept
	files    namedFiles
}

// waits is the time in which at least one request waited before it was retried. Waits at the same time
// count once.
type waits struct{ total, end time.Duration }

// add adds a wait. Waits are added in the order in which they begin.
func (w *waits) add(from, to time.Duration) {
	w.total += max(to-max(from, w.end), 0)
	w.end = max(w.end, to)
}

// until returns the time of the waits of a run that ended then, perhaps before a wait did.
func (w *waits) until(end time.Duration) time.Duration { return w.total - max(w.end-end, 0) }

// namedFiles are the files that the report names.
type namedFiles struct {
	slowest  []fileOutcome
	failed   []fileOutcome // the first
	failures int
}

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
	source, destination string
	status              result.Status
	size                int64
	elapsed             time.Duration
	retries             int
	err                 string
}

// New returns the recorder of a run that began at start.
func New(start time.Time) *Recorder {
	return &Recorder{start: start, timeline: newTimeline(), exchanges: exchangeRecorder{start: start, sums: map[exchangeKind]*exchangeSum{}}}
}

// Exchanges returns the handler that records the library's lines for exchanges.
func (p *Recorder) Exchanges() slog.Handler { return &p.exchanges }

// Note records an event of the file with that ID.
func (p *Recorder) Note(id int, source string, e upload.Event, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, is := now.Sub(p.start), result.ProgressOf(e)
	was := p.timeline.active[id]
	if e.Kind == upload.Resumed {
		was.sent = is.Sent // an earlier run sent it
	}
	p.timeline.move(at, id, was, offsets{is.Sent, is.Committed})
	b := p.timeline.bucket(at)
	switch e.Kind {
	case upload.Waiting:
		b.retries++
		p.waits.add(at, at+e.Delay)
		for t := at; t <= at+e.Delay && t < at+time.Minute; t += p.timeline.length {
			p.timeline.bucket(t).waits++
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
	p.marks = append(p.marks, mark{at, e.Kind.String(), source, is.Committed, e.Delay, exit.Without(e.Cause, e.Err)})
}

// End records the outcome of a file.
func (p *Recorder) End(id int, file result.File, status result.Status, res *upload.Result, err error, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := fileOutcome{source: file.Source, destination: file.Destination, status: status}
	if res != nil {
		f.size, f.elapsed, f.retries = max(res.Size, 0), res.Elapsed, res.Retries
		if status == result.OK {
			p.timeline.move(now.Sub(p.start), id, p.timeline.active[id], offsets{res.Size, res.Size})
		}
	}
	delete(p.timeline.active, id)
	if status == result.Failed {
		f.err = exit.Text(err)
		p.files.failures++
		if len(p.files.failed) < maxNamed {
			p.files.failed = append(p.files.failed, f)
		}
	}
	if status == result.OK || status == result.Failed {
		p.files.slowest = keepLongest(p.files.slowest, f, maxSlowest, func(f fileOutcome) time.Duration { return f.elapsed })
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
