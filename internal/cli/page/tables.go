package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/runlog"
)

// tables writes the lists of files and events.
func (p *Recorder) tables(w *writer) {
	if len(p.files.failed) > 0 {
		w.table("failed", title("Failed files", p.files.failures, len(p.files.failed), "first"), 2, "file", "error", "size")
		for _, f := range p.files.failed {
			w.row("failed", 2, f.source+" → "+f.destination, f.err, readable.Bytes(f.size))
		}
		w.end()
	}
	if len(p.files.slowest) > 0 {
		w.table("slowest", "Slowest files", 2, "file", "outcome", "size", "time", "rate", "retries")
		for _, f := range p.files.slowest {
			rate := ""
			if f.elapsed > 0 && f.status == result.OK {
				rate = readable.Rate(float64(f.size) / f.elapsed.Seconds())
			}
			w.row(string(f.status), 2, f.source+" → "+f.destination, string(f.status), readable.Bytes(f.size), readable.Elapsed(f.elapsed).String(), rate, fmt.Sprint(f.retries))
		}
		w.end()
	}
	if len(p.marks) > 0 {
		w.table("events", title("Retries, resumes and restarts", len(p.marks)+p.dropped, len(p.marks), "latest"), 3, "event", "file", "cause", "time", "durable", "wait")
		for _, m := range p.marks {
			wait := ""
			if m.delay > 0 {
				wait = readable.Elapsed(m.delay).String()
			}
			w.row(m.kind, 3, m.kind, m.source, m.cause, secondsText(m.at.Seconds()), readable.Bytes(m.committed), wait)
		}
		w.end()
	}
}

// tables writes the lists of requests. e.mu is held.
func (e *exchangeRecorder) tables(w *writer) {
	kinds := make([]exchangeKind, 0, len(e.sums))
	for k := range e.sums {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b exchangeKind) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.status, b.status))
	})
	w.table("requests", fmt.Sprintf("Requests: %d", e.requests), 2, "request", "status", "count", "bytes", "mean time", "longest")
	for _, k := range kinds {
		s := e.sums[k]
		w.row("", 2, k.op, runlog.StatusText(k.status), fmt.Sprint(s.n), readable.Bytes(s.sent), readable.Took(s.took/time.Duration(s.n)), readable.Took(s.longest))
	}
	w.end()
	writeExchanges(w, "failed-requests", title("Requests that failed", e.failures, len(e.failed), "latest"), e.failed)
	writeExchanges(w, "slowest-requests", title("Slowest requests", e.requests, len(e.slow), "slowest"), e.slow)
	writeExchanges(w, "latest-requests", title("Latest requests", e.requests, len(e.latest), "latest"), e.latest)
}

func writeExchanges(w *writer, id, title string, lines []exchange) {
	if len(lines) == 0 {
		return
	}
	w.table(id, title, 4, "request", "file", "status", "decision", "started", "took", "offset", "sent", "durable")
	for _, l := range lines {
		durable := ""
		if l.Held >= 0 {
			durable = readable.Bytes(l.Held)
		}
		w.row("", 4, l.Request(), cmp.Or(l.Source, l.Object), runlog.StatusText(l.Status), l.Decision(),
			secondsText(l.at.Seconds()), readable.Took(l.Took), readable.Bytes(l.From), readable.Bytes(l.Sent), durable)
	}
	w.end()
}

// title returns a heading, which states how many items are shown if the list is not
// complete.
func title(text string, n, shown int, which string) string {
	if shown < n {
		return fmt.Sprintf("%s: the %s %d of %d", text, which, shown, n)
	}
	return fmt.Sprintf("%s: %d", text, n)
}
