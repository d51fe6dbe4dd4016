// Package screentest simulates a terminal, for tests of what a program draws.
package screentest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"gcsup/internal/cli/readable"
)

// Screen simulates the part of a terminal that the program uses. It fails for unknown
// sequences.
type Screen struct {
	columns int
	reflows bool // it breaks long lines again when its width changes
	cuts    bool // it cuts lines at the margin
	rows    []row
	y, x    int
	color   string // an SGR parameter of ECMA-48 that later characters have, "" for none
	err     error
}

type row struct {
	cells   []cell
	wrapped bool // the next row continues it
}

type cell struct {
	r     rune // 0 is the second half of a wide character
	color string
}

// New returns an empty screen. If reflows is true, it breaks long lines again when its width changes.
func New(columns int, reflows bool) *Screen {
	return &Screen{columns: columns, reflows: reflows, rows: make([]row, 1)}
}

var sequence = regexp.MustCompile(`^\x1b\[(\??)(\d*)([A-Za-z])`)

// Write shows text. It returns the first error of all calls: a control that a Screen does not know.
func (s *Screen) Write(text string) error {
	for text != "" {
		if m := sequence.FindStringSubmatch(text); m != nil {
			n, _ := strconv.Atoi(m[2])
			s.control(n, m[1]+m[3])
			text = text[len(m[0]):]
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch {
		case r == '\r':
			s.x = 0
		case r == '\n':
			s.down()
		case r < ' ':
			s.err = fmt.Errorf("control character %q", r)
		default:
			s.put(r)
		}
	}
	return s.err
}

func (s *Screen) control(n int, command string) {
	switch command {
	case "A":
		s.y = max(s.y-max(n, 1), 0)
	case "C":
		s.x = min(s.x+max(n, 1), s.columns-1)
	case "?l", "?h":
		if n != 7 {
			s.err = fmt.Errorf("mode %d", n)
		}
		s.cuts = command == "?l"
	case "B":
		s.y = min(s.y+max(n, 1), len(s.rows)-1)
	case "K":
		if n == 2 {
			s.cut(s.y, 0)
		} else {
			s.blank(s.y, s.x)
		}
	case "J":
		if s.y == 0 && s.x == 0 && len(s.rows) > 1 {
			s.err = fmt.Errorf("tmux would move the old rows to its history")
		}
		s.blank(s.y, s.x)
		s.rows = s.rows[:s.y+1]
	case "m":
		if s.color = ""; n != 0 {
			s.color = strconv.Itoa(n)
		}
	default:
		s.err = fmt.Errorf("sequence %q", command)
	}
}

// blank erases the rest of a row. As in tmux, its cells still count if the row is broken again.
func (s *Screen) blank(y, x int) {
	if x == 0 {
		s.cut(y, 0)
		return
	}
	for i := x; i < len(s.rows[y].cells); i++ {
		s.rows[y].cells[i] = cell{r: ' '}
	}
}

// cut removes the rest of a row.
func (s *Screen) cut(y, x int) {
	row := &s.rows[y]
	row.cells, row.wrapped = row.cells[:min(x, len(row.cells))], false
}

func (s *Screen) down() {
	if s.y++; s.y == len(s.rows) {
		s.rows = append(s.rows, row{})
	}
}

func (s *Screen) put(r rune) {
	n := readable.Columns(r)
	if n == 0 {
		return
	}
	if s.cuts && s.x+n > s.columns {
		s.x = max(s.columns-n, 0)
	}
	if s.x+n > s.columns {
		s.rows[s.y].wrapped = true
		s.down()
		s.x = 0
	}
	row := &s.rows[s.y]
	for len(row.cells) < s.x+n {
		row.cells = append(row.cells, cell{r: ' '})
	}
	row.cells[s.x] = cell{r, s.color}
	if n == 2 {
		row.cells[s.x+1] = cell{0, s.color}
	}
	s.x += n
}

// Columns returns the width.
func (s *Screen) Columns() int { return s.columns }

// Resize changes the width.
func (s *Screen) Resize(columns int) {
	s.columns = columns
	if !s.reflows {
		for i := range s.rows {
			s.cut(i, columns)
		}
		return
	}
	var rows []row
	var line []cell
	y, x := 0, 0
	cursor := -1
	for i, r := range s.rows {
		if i == s.y {
			cursor = len(line) + s.x
		}
		line = append(line, r.cells...)
		if r.wrapped {
			continue
		}
		first := len(rows)
		for len(line) > columns {
			rows = append(rows, row{line[:columns:columns], true})
			line = line[columns:]
		}
		rows = append(rows, row{cells: line})
		if cursor >= 0 {
			y, x = first+cursor/columns, cursor%columns
			cursor = -1
		}
		line = nil
	}
	s.rows, s.y, s.x = rows, y, x
}

// Lines returns the lines of the screen, without empty lines at the end.
func (s *Screen) Lines() []string { return Text(s.Runs()) }

// Run is a part of a line that has one color.
type Run struct {
	Text  string
	Color string // an SGR parameter of ECMA-48, "" for none
}

// Runs returns the lines of the screen as runs.
func (s *Screen) Runs() [][]Run {
	lines := make([][]Run, len(s.rows))
	for i, r := range s.rows {
		var runs []Run
		for _, c := range r.cells {
			if c.r == 0 {
				continue
			}
			if n := len(runs); n == 0 || runs[n-1].Color != c.color {
				runs = append(runs, Run{Color: c.color})
			}
			runs[len(runs)-1].Text += string(c.r)
		}
		lines[i] = runs
	}
	return lines
}

// Text returns lines without their colors, and without empty lines at the end.
func Text(lines [][]Run) []string {
	var texts []string
	for _, runs := range lines {
		var line strings.Builder
		for _, r := range runs {
			line.WriteString(r.Text)
		}
		texts = append(texts, strings.TrimRight(line.String(), " "))
	}
	for len(texts) > 0 && texts[len(texts)-1] == "" {
		texts = texts[:len(texts)-1]
	}
	return texts
}
