package tree

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// ReadPatterns reads patterns for Options.Include or Options.Exclude, one per line. The
// format is that of the files for --include-from and --exclude-from of rclone. White
// space around a pattern is removed. Empty lines, and lines that begin with # or ;, are
// ignored. A pattern that begins with one of these characters is written \# or \;.
//
// The error for a wrong pattern wraps [ErrUsage], and has the number of the line.
func ReadPatterns(r io.Reader) (patterns []string, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		text := lines.Text()
		if n == 1 {
			text = strings.TrimPrefix(text, "\ufeff") // editors on Windows begin a file with it
		}
		text = strings.TrimSpace(text)
		if text == "" || text[0] == '#' || text[0] == ';' {
			continue
		}
		if _, err := compilePattern(text); err != nil {
			return nil, fmt.Errorf("%w: line %d: pattern %q: %w", ErrUsage, n, text, err)
		}
		patterns = append(patterns, text)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("after line %d: %w", n, err)
	}
	return patterns, nil
}
