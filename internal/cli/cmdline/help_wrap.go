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

// writeParagraphs writes text, whose paragraphs are separated by empty lines. Lines that begin with
// white space are not changed.
func writeParagraphs(b *strings.Builder, text string, width int) {
	var paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			b.WriteString(strings.Join(fill(strings.Join(paragraph, " "), width), "\n") + "\n")
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		switch {
		case strings.TrimSpace(line) == "":
			end()
			b.WriteString("\n")
		case line[0] == ' ' || line[0] == '\t':
			end()
			b.WriteString(line + "\n")
		default:
			paragraph = append(paragraph, line)
		}
	}
	end()
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

// writeEntries writes a list of entries whose texts begin in that column.
func writeEntries(b *strings.Builder, entries []Entry, column, width int) {
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
