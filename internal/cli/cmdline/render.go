package cmdline

import (
	"strings"
	"unicode/utf8"
)

// render returns blocks as text for a terminal. Its lines have at most width columns, unless a word is
// longer or a line is verbatim.
func render(blocks []Block, width int) string {
	var entries []Entry
	for _, block := range blocks {
		entries = append(entries, block.entries()...)
	}
	column := column(entries, width)
	var b strings.Builder
	for i, block := range blocks {
		if i > 0 && blocks[i-1].Heading == "" {
			b.WriteString("\n")
		}
		switch {
		case block.Heading != "":
			b.WriteString(Plain(block.Heading) + ":\n")
		case block.Paragraph != "":
			b.WriteString(fill(Plain(block.Paragraph), 0, width) + "\n")
		case block.Verbatim != nil:
			b.WriteString("  " + strings.Join(block.Verbatim, "\n  ") + "\n")
		}
		for _, item := range block.Items {
			b.WriteString("  - " + fill(Plain(item), 4, width) + "\n")
		}
		for _, e := range block.entries() {
			b.WriteString(e.render(column, width) + "\n")
		}
	}
	return b.String()
}

// entries returns the list of terms in a block.
func (b *Block) entries() []Entry {
	if b.Table != nil {
		return b.Table.Entries()
	}
	return b.Entries
}

const indent, gap = 2, 2 // of an entry: spaces before the term, and at least between the term and the text

// column returns the column in which the texts of entries begin: behind the longest term that
// leaves them three fifths of the width.
func column(entries []Entry, width int) int {
	widest := 0
	for _, e := range entries {
		if n := utf8.RuneCountInString(e.Term); e.Text != "" && indent+n+gap <= width*2/5 {
			widest = max(widest, n)
		}
	}
	return indent + widest + gap
}

// render returns an entry whose text begins in that column.
func (e *Entry) render(column, width int) string {
	n := indent + utf8.RuneCountInString(e.Term)
	term := "  " + e.Term
	if n > width {
		term = "  " + fill(e.Term, 3*indent, width)
	}
	text := fill(e.Text, column, width)
	switch {
	case text == "":
		return term
	case n+gap > column:
		return term + "\n" + strings.Repeat(" ", column) + text
	}
	return term + strings.Repeat(" ", column-n) + text
}

// fill breaks text into lines of at most width columns, of which all but the first are indented. A longer
// word has its own line.
func fill(text string, indent, width int) string {
	var b strings.Builder
	at := indent
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case b.Len() == 0:
		case at+1+n <= width:
			b.WriteByte(' ')
			at++
		default:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}
