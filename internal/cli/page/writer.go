package page

import (
	"fmt"
	"html"
	"math"
	"strings"

	"gcsup/internal/cli/process"
)

// writer writes HTML. It escapes all arguments.
type writer struct {
	b strings.Builder
}

// markup writes HTML as it is.
func (w *writer) markup(text string) { w.b.WriteString(text) }

// printf writes HTML with escaped arguments.
func (w *writer) printf(format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = html.EscapeString(process.Printable(s))
		}
	}
	fmt.Fprintf(&w.b, format, args...)
}

// row writes a row of a table. The first n cells are text, the others numbers.
func (w *writer) row(class string, text int, values ...string) {
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
func (w *writer) table(id, title string, text int, columns ...string) {
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

func (w *writer) end() { w.markup("</tbody></table></div></section>\n") }

// literal is text that writer.printf does not escape.
type literal string

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
