package cmdline

import "strings"

// Block is a part of a text. Exactly one of its fields is set.
type Block struct {
	Heading   string
	Paragraph string
	Items     []string
	Verbatim  []string // lines
	Table     *Table
}

// Table is a table with a row of headings. All rows have as many cells.
type Table struct {
	Head []string
	Rows [][]string
}

// ParseText divides a text into blocks. The text has the form of Markdown, of which it uses
// headings, items of one line, tables, and fenced lines that are not changed. Every other line is a paragraph.
func ParseText(text string) (blocks []Block) {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for len(lines) > 0 {
		line := lines[0]
		n := 1
		switch {
		case line == "":
		case strings.HasPrefix(line, "```"):
			n = 1 + leading(lines[1:], func(l string) bool { return !strings.HasPrefix(l, "```") })
			blocks = append(blocks, Block{Verbatim: lines[1:n]})
			n = min(n+1, len(lines))
		case strings.HasPrefix(line, "#"):
			blocks = append(blocks, Block{Heading: strings.TrimLeft(line, "# ")})
		case strings.HasPrefix(line, "- "):
			n = leading(lines, func(l string) bool { return strings.HasPrefix(l, "- ") })
			var items []string
			for _, l := range lines[:n] {
				items = append(items, l[len("- "):])
			}
			blocks = append(blocks, Block{Items: items})
		case strings.HasPrefix(line, "|"):
			n = leading(lines, func(l string) bool { return strings.HasPrefix(l, "|") })
			blocks = append(blocks, Block{Table: parseTable(lines[:n])})
		default:
			blocks = append(blocks, Block{Paragraph: line})
		}
		lines = lines[n:]
	}
	return blocks
}

// leading returns how many of the first lines are like that.
func leading(lines []string, like func(string) bool) int {
	for i, l := range lines {
		if !like(l) {
			return i
		}
	}
	return len(lines)
}

// parseTable parses a table, whose second line separates its headings.
func parseTable(lines []string) *Table {
	t := &Table{Head: cells(lines[0])}
	for _, l := range lines[min(2, len(lines)):] {
		t.Rows = append(t.Rows, cells(l))
	}
	return t
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

// Plain returns text without the marks of Markdown: the backticks, and the targets of links.
func Plain(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "](")
		open := strings.LastIndex(before, "[")
		_, after, closed := strings.Cut(rest, ")")
		if !found || open < 0 || !closed {
			b.WriteString(text)
			return strings.ReplaceAll(b.String(), "`", "")
		}
		b.WriteString(before[:open] + before[open+1:])
		text = after
	}
}

// Entries returns the rows of a table as a list. If the rows have more than two cells, each text
// names the columns of its cells.
func (t *Table) Entries() (entries []Entry) {
	for _, row := range t.Rows {
		e := Entry{Term: Plain(row[0])}
		var texts []string
		for i := 1; i < len(row); i++ {
			switch {
			case row[i] == "":
			case len(row) == 2:
				texts = append(texts, Plain(row[i]))
			default:
				texts = append(texts, Plain(t.Head[i])+": "+Plain(row[i]))
			}
		}
		e.Text = strings.Join(texts, "; ")
		entries = append(entries, e)
	}
	return entries
}

// writeText writes blocks for a terminal.
func writeText(b *strings.Builder, blocks []Block, width int) {
	for i, block := range blocks {
		if i > 0 {
			b.WriteString("\n")
		}
		switch {
		case block.Heading != "":
			b.WriteString(Plain(block.Heading) + ":\n")
		case block.Paragraph != "":
			b.WriteString(strings.Join(fill(Plain(block.Paragraph), width), "\n") + "\n")
		case block.Table != nil:
			entries := block.Table.Entries()
			writeEntries(b, entries, column(entries, width), width)
		case block.Verbatim != nil:
			b.WriteString("  " + strings.Join(block.Verbatim, "\n  ") + "\n")
		}
		for _, item := range block.Items {
			b.WriteString("  - " + strings.Join(fill(Plain(item), width-4), "\n    ") + "\n")
		}
	}
}
