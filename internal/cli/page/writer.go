package page

import (
	"bytes"
	"fmt"
	"html"
	"strings"

	"gcsup/internal/cli/process"
)

// writer writes HTML. It uses no template: the linker keeps every exported method in a program that
// executes one, which adds 6.3 MB to gcsup.
type writer struct{ bytes.Buffer }

// printf writes HTML. It escapes all strings among args, and replaces what controls a terminal that
// displays the page. The verbs must be in the text or in quoted attributes of elements.
func (w *writer) printf(format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = html.EscapeString(process.Printable(s))
		}
	}
	fmt.Fprintf(w, format, args...)
}

func (w *writer) chart(c chart) {
	w.WriteString(`<section><h2>Throughput and durable bytes</h2>
<figure><svg id="charts" viewBox="0 0 960 370" role="img" aria-label="throughput and durable bytes over time">
<g transform="translate(0 10)">`)
	w.bars(c.Waits)
	w.bars(c.Sent)
	w.panel(c.Marks, c.Fastest)
	w.WriteString("</g>\n<g transform=\"translate(0 200)\">")
	w.bars(c.Waits)
	w.panel(c.Marks, c.Stored)
	if c.Durable != "" {
		w.printf("\n<path class=\"durable\" d=\"M80 150%sH950\"/>", c.Durable)
	}
	for _, at := range c.Times {
		w.printf("\n<text x=\"%.1f\" y=\"168\" text-anchor=\"%s\">%s</text>", at.X, at.Class, at.Title)
	}
	w.WriteString("</g>\n</svg>\n<figcaption>")
	for _, key := range [][2]string{
		{"sent", "sent per second (above)"}, {"durable", "durable at the service (below)"}, {"retry", "retry"}, {"wait", "wait before a retry"}, {"loss", "started over"},
	} {
		w.printf("<span class=\"key\" style=\"background: var(--%s)\"></span>%s &nbsp;\n", key[0], key[1])
	}
	w.WriteString("</figcaption></figure></section>")
}

func (w *writer) bars(list []shape) {
	for _, s := range list {
		w.printf("\n<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">", s.Class, s.X, s.Y, s.W, s.H)
		if s.Title != "" {
			w.printf("<title>%s</title>", s.Title)
		}
		w.WriteString("</rect>")
	}
}

// panel writes the axis of a panel, with the label of its maximum, and the marks.
func (w *writer) panel(marks []shape, label string) {
	w.WriteString("\n<path class=\"axis\" d=\"M80 150H950\"/><text x=\"72\" y=\"150\" text-anchor=\"end\">0</text>")
	for _, s := range marks {
		w.printf("\n<path class=\"%s\" d=\"M%.1f %.1fv%.1f\"><title>%s</title></path>", s.Class, s.X, s.Y, s.H, s.Title)
	}
	w.printf("\n<text x=\"72\" y=\"10\" text-anchor=\"end\">%s</text>", label)
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
		format := "<%[1]s>%[2]s</%[1]s>"
		if i >= texts {
			format = "<%[1]s class=\"n\">%[2]s</%[1]s>"
		}
		w.printf(format, element, cell)
	}
}
