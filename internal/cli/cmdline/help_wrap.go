package cmdline

import (
	"strings"
	"unicode/utf8"
)

// narrow is the number of columns below which the text of an entry is below its term.
const narrow = 60

// fill breaks text into lines of at most width columns. A longer word has its own line.
func fill(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// writeParagraphs writes text, whose paragraphs are separated by empty lines. A paragraph that begins with
// white space is not changed.
func writeParagraphs(b *strings.Builder, text string, width int) {
	for i, p := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		if p = strings.Trim(p, "\n"); p != strings.TrimLeft(p, " \t") {
			b.WriteString(p + "\n")
		} else {
			b.WriteString(strings.Join(fill(p, width), "\n") + "\n")
		}
	}
}

// Entry is a term and its description.
type Entry struct{ Term, Text string }

// column returns the column in which the texts of entries begin: behind the longest term that
// leaves them three fifths of the width.
func column(entries []Entry, width int) int {
	const indent, gap = 2, 2
	if width < narrow {
		return 3 * indent
	}
	widest := 0
	for _, e := range entries {
		if n := utf8.RuneCountInString(e.Term); indent+n+gap <= width*2/5 {
			widest = max(widest, n)
		}
	}
	return indent + widest + gap
}

// writeEntries writes a list of entries.
func writeEntries(b *strings.Builder, entries []Entry, width int) {
	writeAligned(b, entries, column(entries, width), width)
}

// writeAligned writes a list of entries whose texts begin in that column.
func writeAligned(b *strings.Builder, entries []Entry, column, width int) {
	for _, e := range entries {
		term := "  " + e.Term
		if width < narrow {
			term = "  " + strings.TrimSpace(e.Term)
		}
		if n := utf8.RuneCountInString(term); width >= narrow && n+2 <= column {
			term += strings.Repeat(" ", column-n)
		} else {
			if n > width {
				term = "  " + strings.Join(fill(e.Term, width-2), "\n  ")
			}
			term += "\n" + strings.Repeat(" ", column)
		}
		b.WriteString(term + strings.Join(fill(e.Text, width-column), "\n"+strings.Repeat(" ", column)) + "\n")
	}
}
