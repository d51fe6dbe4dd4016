package cmdline

import (
	"regexp"
	"strings"
)

// Block is a part of a text. Exactly one of its fields is set.
type Block struct {
	Heading   string
	Paragraph string
	Items     []string
	Verbatim  []string // lines
	Table     *Table
	Entries   []Entry
}

// Table is a table with a row of headings. All rows have as many cells.
type Table struct {
	Head []string
	Rows [][]string
}

// Entry is a term and its description, which may be empty.
type Entry struct{ Term, Text string }

// ParseText divides a text into blocks. The text has the form of Markdown, of which it uses
// headings, items of one line, tables, and lines that are fenced or indented by two spaces, which are not
// changed. Other lines are paragraphs.
func ParseText(text string) (blocks []Block) {
	fenced, before := false, "" // the line before
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		begins := func(prefix string) bool { return strings.HasPrefix(line, prefix) }
		continues := func(prefix string) bool { return begins(prefix) && strings.HasPrefix(before, prefix) }
		last := len(blocks) - 1
		switch {
		case begins("```"):
			if fenced = !fenced; fenced {
				blocks = append(blocks, Block{Verbatim: []string{}})
			}
		case fenced:
			blocks[last].Verbatim = append(blocks[last].Verbatim, line)
		case continues("  "):
			blocks[last].Verbatim = append(blocks[last].Verbatim, line[2:])
		case begins("  "):
			blocks = append(blocks, Block{Verbatim: []string{line[2:]}})
		case continues("- "):
			blocks[last].Items = append(blocks[last].Items, line[len("- "):])
		case begins("- "):
			blocks = append(blocks, Block{Items: []string{line[len("- "):]}})
		case continues("|"):
			if t := blocks[last].Table; !begins("|--") { // separates the headings
				t.Rows = append(t.Rows, cells(line))
			}
		case begins("|"):
			blocks = append(blocks, Block{Table: &Table{Head: cells(line)}})
		case begins("#"):
			blocks = append(blocks, Block{Heading: strings.TrimLeft(line, "# ")})
		case line != "" && before != "" && last >= 0 && blocks[last].Paragraph != "":
			blocks[last].Paragraph += " " + line
		case line != "":
			blocks = append(blocks, Block{Paragraph: line})
		}
		before = line
	}
	return blocks
}

// cells returns the cells of a line of a table. A bar in a cell has a backslash before it.
func cells(line string) (all []string) {
	const bar = "\x00"
	line = strings.ReplaceAll(strings.TrimSpace(line), `\|`, bar)
	line = strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
	for cell := range strings.SplitSeq(line, "|") {
		all = append(all, strings.TrimSpace(strings.ReplaceAll(cell, bar, "|")))
	}
	return all
}

// marks matches the marks of Markdown: a link, and a backtick.
var marks = regexp.MustCompile(`\[([^\[\]]*)\]\([^()]*\)|` + "`")

// Plain returns text without the marks of Markdown: the backticks, and the targets of links.
func Plain(text string) string {
	return strings.ReplaceAll(marks.ReplaceAllString(text, "$1"), "`", "")
}

// Entries returns the rows of a table as a list. If the rows have more than two cells, each text
// names the columns of its cells.
func (t *Table) Entries() (entries []Entry) {
	for _, row := range t.Rows {
		var texts []string
		for i, text := range row[1:] {
			if text != "" && len(row) > 2 {
				text = t.Head[i+1] + ": " + text
			}
			if text != "" {
				texts = append(texts, Plain(text))
			}
		}
		entries = append(entries, Entry{Plain(row[0]), strings.Join(texts, "; ")})
	}
	return entries
}
