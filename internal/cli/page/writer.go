package page

import (
	"bytes"
	_ "embed" // head.html and chart.html
	"fmt"
	"html"
	"strings"
	"time"

	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
)

// writer writes HTML. It uses no template: the linker keeps every exported method in a program that
// executes one, which adds 6.3 MB to gcsup.
type writer struct{ bytes.Buffer }

// printf writes HTML. It escapes all strings among args, and replaces what controls a terminal that
// displays the page. A []byte is HTML. The verbs must be in the text or in quoted attributes of elements.
func (w *writer) printf(format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = html.EscapeString(process.Printable(s))
		}
	}
	fmt.Fprintf(w, format, args...)
}

// head is the beginning of a page, up to its title. The page loads nothing and runs no script, even if
// a file's name contains HTML.
//
//go:embed head.html
var head string

// figure is the chart without what depends on the run.
//
//go:embed chart.html
var figure string

// chart writes the throughput and the committed bytes over time, in two panels.
func (w *writer) chart(t *timeline, elapsed time.Duration) {
	const left, width, height = 80.0, 870.0, 150.0
	span := max(elapsed, t.length)
	x := func(at time.Duration) float64 { return left + min(at.Seconds()/span.Seconds(), 1)*width }
	intervals, buckets := t.intervals(elapsed), t.buckets[:min(int(elapsed/t.length)+1, len(t.buckets))]
	fastest, most := 0.0, int64(0)
	for _, in := range intervals {
		fastest = max(fastest, in.rate())
	}
	for _, b := range buckets {
		most = max(most, b.committed)
	}
	var waits, sent, marks, committed, times writer
	for _, in := range intervals {
		if in.sent > 0 {
			h := in.rate() / fastest * height
			sent.printf("\n<rect class=\"sent\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>%s: %s</title></rect>",
				x(in.from), height-h, max(x(in.to)-x(in.from), 1), h, readable.Elapsed(in.from), readable.Rate(in.rate()))
		}
	}
	for i, b := range buckets {
		at := time.Duration(i) * t.length
		from, to := x(at), x(at+t.length)
		if b.waits {
			waits.printf("\n<rect class=\"wait\" x=\"%.1f\" width=\"%.1f\" height=\"150\"/>", from, to-from)
		}
		if b.retries > 0 {
			marks.printf("\n<path class=\"retry\" d=\"M%.1f 142v14\"><title>%s: %s</title></path>", from, readable.Elapsed(at), readable.Plural(b.retries, "retry", "retries"))
		}
		if b.lost {
			marks.printf("\n<path class=\"loss\" d=\"M%.1f 0v150\"><title>%s: started over</title></path>", from, readable.Elapsed(at))
		}
		if b.seen {
			committed.printf("H%.1fV%.1f", to, height*(1-float64(max(b.committed, 0))/float64(max(most, 1))))
		}
	}
	for i, anchor := range []string{"start", "middle", "middle", "middle", "end"} {
		at := span * time.Duration(i) / 4
		times.printf("\n<text x=\"%.1f\" y=\"168\" text-anchor=\"%s\">%s</text>", x(at), anchor, readable.Elapsed(at))
	}
	w.printf(figure, waits.Bytes(), sent.Bytes(), marks.Bytes(), readable.Rate(fastest), readable.Bytes(most), committed.Bytes(), times.Bytes())
}

// table is a list with a heading. The first columns are texts, the others numbers.
type table struct {
	ID, Name string
	Which    string // rows are kept
	Texts    int
	Columns  string // separated by commas
	List     list
}

func (w *writer) table(t table) {
	which := ""
	if t.Which != "" && len(t.List.Rows) < t.List.N {
		which = fmt.Sprintf("the %s %d of ", t.Which, len(t.List.Rows))
	}
	w.printf("\n<section><h2>%s: %s%d</h2>\n<div class=\"scroll\"><table id=\"%s\"><thead><tr>", t.Name, which, t.List.N, t.ID)
	w.cells("th", t.Texts, strings.Split(t.Columns, ","))
	w.WriteString("</tr></thead><tbody>")
	for _, r := range t.List.Rows {
		w.printf("\n<tr class=\"%s\">", r.Class)
		w.cells("td", t.Texts, r.Cells)
		w.WriteString("</tr>")
	}
	w.WriteString("\n</tbody></table></div></section>")
}

// cells writes the cells of a row. The first ones are texts, the others numbers.
func (w *writer) cells(element string, texts int, cells []string) {
	for i, cell := range cells {
		class := ""
		if i >= texts {
			class = ` class="n"`
		}
		w.printf("<%[1]s%[2]s>%[3]s</%[1]s>", element, []byte(class), cell)
	}
}
