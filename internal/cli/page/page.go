package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
)

// About is the content of a report that its Recorder does not have.
type About struct {
	Command string // the command line
	Version string // of the program
	Totals  *result.Totals
	Elapsed time.Duration
	Code    int // the exit code
}

// Render returns the page.
func (p *Recorder) Render(about About) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := about.Totals
	figures := [][2]any{
		{"files", t.Files()}, {"uploaded", t.Uploaded}, {"skipped", t.Skipped + t.Finished}, {"failed", t.Failed + t.Interrupted + t.NotTried},
		{"uploaded bytes", readable.Bytes(t.Bytes)}, {"sent bytes", readable.Bytes(t.Sent)}, {"sent again", readable.Bytes(t.Resent)},
		{"requests", p.requests.N}, {"retries", t.Retries}, {"waited", readable.Elapsed(p.waited - max(p.waitEnd-about.Elapsed, 0))},
		{"elapsed", readable.Elapsed(about.Elapsed)}, {"average", cmp.Or(readable.Rate(t.Rate(about.Elapsed)), "–")}, {"exit code", about.Code},
	}
	if d := t.Deletions; d != nil {
		figures = append(figures, [2]any{"objects deleted", d.Deleted}, [2]any{"objects not deleted", d.Failed})
	}
	const columns = "request,file,status,decision,started,took,offset,sent,committed"
	tables := []table{
		{"failed", "Failed files", "first", 2, "file,error,size", p.failed},
		{"slowest", "Slowest files", "slowest", 2, "file,outcome,size,time,rate,retries", p.slowest},
		{"events", "Retries, resumes and restarts", "latest", 3, "event,file,cause,time,committed,wait", p.events},
		{"requests", "Requests", "", 2, "request,status,count,bytes,mean time,longest", p.kinds()},
		{"failed-requests", "Requests that failed", "latest", 4, columns, p.failedRequests},
		{"slowest-requests", "Slowest requests", "slowest", 4, columns, p.slowRequests},
		{"latest-requests", "Latest requests", "latest", 4, columns, p.requests},
	}
	w := &writer{}
	w.WriteString(head)
	w.printf("<title>gcsup: %[1]s</title></head><body>\n<h1>gcsup: %[1]s</h1>\n<p><code>%s</code></p>\n<p class=\"dim\">%s, version %s</p>\n<dl>",
		outcome(t, about.Code), about.Command, p.start.Format("2006-01-02 15:04:05 -07:00"), about.Version)
	for _, f := range figures {
		w.printf("\n<div><dt>%s</dt><dd>%s</dd></div>", f[0], fmt.Sprint(f[1]))
	}
	w.WriteString("\n</dl>\n")
	w.chart(&p.timeline, about.Elapsed)
	for _, t := range tables {
		if len(t.List.Rows) > 0 || t.ID == "requests" {
			w.table(t)
		}
	}
	w.WriteString("\n</body></html>\n")
	return w.Bytes()
}

func outcome(t *result.Totals, code int) string {
	switch {
	case code == exit.OK:
		return readable.Plural(t.Files(), "file, done", "files, done")
	case t.Interrupted > 0:
		return "interrupted"
	}
	return fmt.Sprintf("%d of %s failed", t.Failed+t.Interrupted+t.NotTried, readable.Plural(t.Files(), "file", "files"))
}

// kinds returns the sums of the requests of each kind.
func (p *Recorder) kinds() list {
	all := list{N: p.requests.N}
	for k, s := range p.sums {
		all.Rows = append(all.Rows, row{0, "", []string{k.op, k.status, fmt.Sprint(s.n), readable.Bytes(s.sent), readable.Took(s.took / time.Duration(s.n)), readable.Took(s.longest)}})
	}
	slices.SortFunc(all.Rows, func(a, b row) int { return slices.Compare(a.Cells, b.Cells) })
	return all
}
