package main

import (
	"cmp"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/cli/runlog"
)

// page is the content of a report that its recorder does not have.
type page struct {
	command string
	totals  *result.Totals
	elapsed time.Duration
	code    int
}

// checkWritable returns an error if no file can be created beside path.
func checkWritable(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// createBeside creates a temporary file in the directory of path. Only its owner can read it. The
// error contains path, not the name of the file.
func createBeside(path string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".gcsup-report-*")
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("%s: %w", path, pe.Err)
	}
	return f, err
}

// write replaces the file at path with the report. If it fails, the file stays
// unchanged.
func (p *pageRecorder) write(path string, about page) (err error) {
	f, err := createBeside(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	err = p.render(f, about)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// pageWriter writes HTML. It escapes all arguments, and keeps the first error.
type pageWriter struct {
	b strings.Builder
}

// markup writes HTML as it is.
func (w *pageWriter) markup(text string) { w.b.WriteString(text) }

// printf writes HTML with escaped arguments.
func (w *pageWriter) printf(format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = html.EscapeString(process.Printable(s))
		}
	}
	fmt.Fprintf(&w.b, format, args...)
}

// row writes a row of a table. The first n cells are text, the others numbers.
func (w *pageWriter) row(class string, text int, values ...string) {
	w.printf(`<tr class="%s">`, class)
	for i, c := range values {
		if i < text {
			w.printf("<td>%s</td>", c)
		} else {
			w.printf(`<td class="n">%s</td>`, c)
		}
	}
	w.markup("</tr>\n")
}

// table writes the beginning of a table. end closes it.
func (w *pageWriter) table(id, title string, text int, columns ...string) {
	w.printf("<section><h2>%s</h2>\n<div class=\"scroll\"><table id=\"%s\"><thead><tr>", title, id)
	for i, c := range columns {
		if i < text {
			w.printf("<th>%s</th>", c)
		} else {
			w.printf(`<th class="n">%s</th>`, c)
		}
	}
	w.markup("</tr></thead><tbody>\n")
}

func (w *pageWriter) end() { w.markup("</tbody></table></div></section>\n") }

const pageStyle = `
:root { color-scheme: light dark; --bg: #fff; --fg: #202124; --dim: #5f6368; --line: #dadce0; --panel: #f8f9fa;
  --sent: #1a73e8; --durable: #188038; --retry: #b06000; --loss: #c5221f; --wait: #fde293; }
@media (prefers-color-scheme: dark) { :root { --bg: #1f1f23; --fg: #e8eaed; --dim: #9aa0a6; --line: #3c4043; --panel: #28292d;
  --sent: #8ab4f8; --durable: #81c995; --retry: #fcad70; --loss: #f28b82; --wait: #5c4a12; } }
body { margin: 2rem auto; padding: 0 1rem; max-width: 70rem; background: var(--bg); color: var(--fg); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; } p.dim, figcaption { color: var(--dim); }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .6rem; }
dl div { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: .4rem .7rem; }
dt { color: var(--dim); font-size: .85rem; } dd { margin: 0; font-size: 1.15rem; }
figure { margin: 0; } svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--dim); } .axis { stroke: var(--line); } .sent { fill: var(--sent); } .durable { fill: none; stroke: var(--durable); stroke-width: 2; }
.retry { stroke: var(--retry); stroke-width: 2; } .loss { stroke: var(--loss); stroke-width: 3; } .wait { fill: var(--wait); }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .3em; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .2rem .6rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
th, table[id$="-requests"] td:is(:nth-child(1), :nth-child(3)) { white-space: nowrap; } table[id$="-requests"] td:is(:nth-child(2), :nth-child(4)) { min-width: 10rem; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } tr.failed td:first-child { color: var(--loss); }
`

// render writes the page.
func (p *pageRecorder) render(out io.Writer, about page) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exchanges.mu.Lock()
	defer p.exchanges.mu.Unlock()
	w, t := &pageWriter{}, about.totals
	w.markup("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n")
	w.markup(`<meta name="viewport" content="width=device-width, initial-scale=1">` + "\n")
	// The page loads nothing and runs no script, even if a file's name contains HTML.
	w.markup(`<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">` + "\n")
	w.printf("<title>gcsup: %s</title><style>%s</style></head><body>\n", outcome(t, about.code), literal(pageStyle))
	w.printf("<h1>gcsup: %s</h1>\n<p><code>%s</code></p>\n", outcome(t, about.code), about.command)
	w.printf("<p class=\"dim\">%s, version %s</p>\n<dl>\n", p.start.Format("2006-01-02 15:04:05 -07:00"), version().Version)
	for _, s := range [][2]string{
		{"files", fmt.Sprint(t.Files())}, {"uploaded", fmt.Sprint(t.Uploaded)}, {"skipped", fmt.Sprint(t.Skipped + t.Finished)},
		{"failed", fmt.Sprint(t.Failed + t.Interrupted + t.NotTried)}, {"uploaded bytes", readable.Bytes(t.Bytes)}, {"sent bytes", readable.Bytes(t.Sent)},
		{"sent again", readable.Bytes(t.Resent)}, {"requests", fmt.Sprint(p.exchanges.requests)}, {"retries", fmt.Sprint(t.Retries)}, {"waited", readable.Elapsed(t.Waited).String()},
		{"elapsed", readable.Elapsed(about.elapsed).String()}, {"average", cmp.Or(readable.Rate(t.Rate(about.elapsed)), "–")}, {"exit code", fmt.Sprint(about.code)},
	} {
		w.printf("<div><dt>%s</dt><dd>%s</dd></div>\n", s[0], s[1])
	}
	if d := t.Deletions; d != nil {
		w.printf("<div><dt>objects deleted</dt><dd>%s</dd></div>\n<div><dt>objects not deleted</dt><dd>%s</dd></div>\n", fmt.Sprint(d.Deleted), fmt.Sprint(d.Failed))
	}
	w.markup("</dl>\n")
	p.charts(w, about.elapsed)
	p.tables(w)
	p.exchanges.tables(w)
	w.markup("</body></html>\n")
	_, err := io.WriteString(out, w.b.String())
	return err
}

// literal is text that pageWriter.printf does not escape.
type literal string

func outcome(t *result.Totals, code int) string {
	switch {
	case code == exit.OK:
		return readable.Plural(t.Files(), "file, done", "files, done")
	case t.Interrupted > 0:
		return "interrupted"
	}
	return fmt.Sprintf("%d of %s failed", t.Failed+t.Interrupted+t.NotTried, readable.Plural(t.Files(), "file", "files"))
}

// Sizes of the charts, in units of the drawing.
const (
	chartWidth, chartLeft, chartRight = 960, 80, 10
	chartHeight, chartGap             = 150, 40
	plotWidth                         = chartWidth - chartLeft - chartRight
)

// charts writes the throughput and the durable bytes over time.
func (p *pageRecorder) charts(w *pageWriter, elapsed time.Duration) {
	n := min(int(elapsed/p.timeline.length)+1, len(p.timeline.buckets))
	buckets := p.timeline.buckets[:n]
	span := max(elapsed, p.timeline.length).Seconds()
	x := func(t float64) float64 { return chartLeft + min(t/span, 1)*plotWidth }
	at := func(i int) float64 { return (time.Duration(i) * p.timeline.length).Seconds() }
	var fastest float64
	var durable int64
	intervals := p.timeline.intervals(elapsed)
	for _, in := range intervals {
		fastest = max(fastest, in.rate())
	}
	for _, b := range buckets {
		durable = max(durable, b.durable)
	}
	w.markup("<section><h2>Throughput and durable bytes</h2>\n<figure>")
	w.printf(`<svg id="charts" viewBox="0 0 %d %d" role="img" aria-label="throughput and durable bytes over time">`+"\n", chartWidth, 2*chartHeight+chartGap+30)
	panels := []struct {
		top   float64
		label string
	}{{10, readable.Rate(fastest)}, {10 + chartHeight + chartGap, readable.Bytes(durable)}}
	for _, panel := range panels {
		for i := 0; i < n; i++ {
			first := i
			for i < n && buckets[i].waits > 0 {
				i++
			}
			if first < i {
				w.printf(`<rect class="wait" x="%.1f" y="%.1f" width="%.1f" height="%d"/>`+"\n", x(at(first)), panel.top, x(at(i))-x(at(first)), chartHeight)
			}
		}
		w.printf(`<line class="axis" x1="%d" x2="%d" y1="%[3]g" y2="%[3]g"/>`+"\n", chartLeft, chartWidth-chartRight, panel.top+chartHeight)
		w.printf(`<text x="%d" y="%g" text-anchor="end">%s</text><text x="%[1]d" y="%[4]g" text-anchor="end">0</text>`+"\n", chartLeft-8, panel.top+10, panel.label, panel.top+chartHeight)
	}
	for _, in := range intervals {
		if in.sent == 0 {
			continue
		}
		from, to := in.from.Seconds(), in.to.Seconds()
		h := in.rate() / fastest * chartHeight
		w.printf(`<rect class="sent" x="%.1f" y="%.1f" width="%.2f" height="%.1f"><title>%s: %s</title></rect>`+"\n",
			x(from), panels[0].top+chartHeight-h, max(x(to)-x(from), 1), h, secondsText(from), readable.Rate(in.rate()))
	}
	if durable > 0 {
		y := func(n int64) float64 {
			return panels[1].top + chartHeight - float64(max(n, 0))/float64(durable)*chartHeight
		}
		w.printf(`<path class="durable" d="M%.1f %.1f`, x(0), y(0))
		for i, b := range buckets {
			if b.seen {
				w.printf("H%.1fV%.1f", x(at(i+1)), y(b.durable))
			}
		}
		w.printf(`H%.1f"/>`+"\n", x(span))
	}
	for i, b := range buckets {
		for _, panel := range panels {
			if b.retries > 0 {
				w.printf(`<line class="retry" x1="%.1[1]f" x2="%.1[1]f" y1="%[2]g" y2="%[3]g"><title>%[4]s: %[5]s</title></line>`+"\n",
					x(at(i)), panel.top+chartHeight-8, panel.top+chartHeight+6, secondsText(at(i)), readable.Plural(b.retries, "retry", "retries"))
			}
			if b.losses > 0 {
				w.printf(`<line class="loss" x1="%.1[1]f" x2="%.1[1]f" y1="%[2]g" y2="%[3]g"><title>%[4]s: started over</title></line>`+"\n",
					x(at(i)), panel.top, panel.top+chartHeight, secondsText(at(i)))
			}
		}
	}
	for i := range 5 {
		t := span * float64(i) / 4
		anchor := []string{"start", "middle", "middle", "middle", "end"}[i]
		w.printf(`<text x="%.1f" y="%d" text-anchor="%s">%s</text>`, x(t), 10+2*chartHeight+chartGap+18, anchor, secondsText(t))
	}
	w.markup("</svg>\n<figcaption>")
	for _, k := range [][2]string{{"sent", "sent per second (above)"}, {"durable", "durable at the service (below)"}, {"retry", "retry"}, {"wait", "wait before a retry"}, {"loss", "started over"}} {
		w.printf(`<span class="key" style="background: var(--%s)"></span>%s &nbsp; `, k[0], k[1])
	}
	w.markup("</figcaption></figure></section>\n")
}

// tables writes the lists of files and events.
func (p *pageRecorder) tables(w *pageWriter) {
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
func (e *exchangeRecorder) tables(w *pageWriter) {
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

func writeExchanges(w *pageWriter, id, title string, lines []exchange) {
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

// secondsText returns a time since the start.
func secondsText(s float64) string {
	switch {
	case s < 10:
		return fmt.Sprintf("%.1f s", s)
	case s < 60:
		return fmt.Sprintf("%.0f s", s)
	case s < 3600:
		return fmt.Sprintf("%d:%02d", int(s)/60, int(s)%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", int(s)/3600, int(math.Mod(s, 3600))/60, int(s)%60)
}
