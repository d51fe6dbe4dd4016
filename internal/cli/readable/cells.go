package readable

import (
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Columns returns how many columns of a terminal r takes: 2 for East Asian wide
// characters and emoji, 0 for marks that combine with the previous character.
func Columns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// Width returns how many columns text takes.
func Width(text string) int {
	n := 0
	for _, r := range text {
		n += Columns(r)
	}
	return n
}

// head returns the longest beginning of text that takes at most width columns.
func head(text string, width int) string {
	n := 0
	for i, r := range text {
		if n += Columns(r); n > width {
			return text[:i]
		}
	}
	return text
}

// tail returns the longest end of text that takes at most width columns.
func tail(text string, width int) string {
	left := Width(text) - width
	for i, r := range text {
		if left <= 0 && Columns(r) > 0 {
			return text[i:]
		}
		left -= Columns(r)
	}
	return ""
}

// Shorten cuts the end of text if it takes more than width columns.
func Shorten(text string, width int) string {
	if Width(text) <= width {
		return text
	}
	if width <= 0 {
		return ""
	}
	return head(text, width-1) + "…"
}

// ShortenPath cuts path to at most width columns. It keeps the base name, and as
// many directories above it as Fit. If the base name itself is too long, it keeps
// the beginning and the end of the name.
func ShortenPath(path string, width int) string {
	if Width(path) <= width {
		return path
	}
	isSeparator := func(r rune) bool { return r == '/' || r == filepath.Separator }
	kept := ""
	for rest := path; ; {
		i := strings.LastIndexFunc(rest, isSeparator)
		if i < 0 || Width(path[i:])+1 > width {
			break
		}
		kept, rest = path[i:], rest[:i]
	}
	if kept != "" {
		return "…" + kept
	}
	base := path[strings.LastIndexFunc(path, isSeparator)+1:]
	if Width(base) <= width {
		return base
	}
	if width < 5 {
		return Shorten(base, width)
	}
	end := min((width-1)/2, 12)
	return head(base, width-1-end) + "…" + tail(base, end)
}

// Fit returns text in exactly width columns: cut at the end, or padded on the right.
func Fit(text string, width int) string {
	text = Shorten(text, width)
	return text + strings.Repeat(" ", max(width-Width(text), 0))
}

// FitRight returns text in exactly width columns, padded on the left.
func FitRight(text string, width int) string {
	text = Shorten(text, width)
	return strings.Repeat(" ", max(width-Width(text), 0)) + text
}
