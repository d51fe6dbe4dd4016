package tree

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// A pattern selects files and directories by their paths below the source. The
// documentation of Options has the rules.
type pattern struct {
	text    string
	re      *regexp.Regexp
	last    bool // re is for the last element of a path, not for the whole path
	dirOnly bool // matches only directories
}

// match reports whether p matches a path, apart from the directories above it.
func (p *pattern) match(rel string, isDir bool) bool {
	if p.dirOnly && !isDir {
		return false
	}
	if p.last {
		rel = rel[strings.LastIndexByte(rel, '/')+1:]
	}
	return p.re.MatchString(rel)
}

// parsePattern returns the pattern with the given text.
func parsePattern(text string) (*pattern, error) {
	p, err := compilePattern(text)
	if err != nil {
		return nil, fmt.Errorf("%w: pattern %q: %w", ErrUsage, text, err)
	}
	return p, nil
}

func compilePattern(text string) (*pattern, error) {
	if text == "" {
		return nil, errors.New("it is empty")
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("it is not valid UTF-8")
	}
	if !strings.Contains(text, "{{") {
		for elem := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(text, "/"), "/"), "/") {
			if elem == "." || elem == ".." || elem == "" && text != "/" {
				return nil, fmt.Errorf("it never matches, because no path has an element %q", elem)
			}
		}
	}
	p := &pattern{text: text}
	glob, anchored := strings.CutPrefix(text, "/")
	if glob == "" {
		glob = "**" // "/" is the source with all below
	}
	// DIR/** matches all below DIR, as DIR/ does. A directory that matches DIR/ need not
	// be read to exclude it.
	if dir, ok := strings.CutSuffix(glob, "/**"); ok {
		glob, p.dirOnly = dir, true
	} else {
		glob, p.dirOnly = strings.CutSuffix(glob, "/")
	}
	expr, slash, err := translate(glob)
	if err != nil {
		return nil, err
	}
	switch {
	case anchored:
		expr = "^(?:" + expr + ")$"
	case !slash: // much faster than a search in the whole path
		expr, p.last = "^(?:"+expr+")$", true
	default:
		expr = "(?:^|/)(?:" + expr + ")$"
	}
	p.re, err = compile(expr)
	return p, err
}

// translate returns the regular expression of a pattern. slash is false if it
// matches no text with a slash.
func translate(glob string) (expr string, slash bool, err error) {
	var b strings.Builder
	braces := 0 // open ones
	for rest := glob; rest != ""; {
		c, n := utf8.DecodeRuneInString(rest)
		switch {
		case strings.HasPrefix(rest, "***"):
			return "", false, errors.New("more than two * in a row")
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`(?s:.*)`)
			n, slash = 2, true
		case c == '*':
			b.WriteString(`[^/]*`)
		case c == '?':
			b.WriteString(`[^/]`)
		case c == '[':
			if n, err = classLen(rest); err != nil {
				return "", false, err
			}
			b.WriteString(rest[:n])
			slash = true // [^a] matches a slash
		case strings.HasPrefix(rest, "{{"):
			if n, err = regexpLen(rest); err != nil {
				return "", false, err
			}
			b.WriteString("(?:" + rest[2:n-2] + ")")
			slash = true
		case c == '{':
			braces++
			b.WriteString("(?:")
		case c == '}' && braces > 0:
			braces--
			b.WriteString(")")
		case c == '}' || c == ']':
			return "", false, fmt.Errorf(`%c without its opening bracket; write \%c for the character`, c, c)
		case c == ',' && braces > 0:
			b.WriteString("|")
		case c == '\\':
			if n, err = escapeLen(rest); err != nil {
				return "", false, err
			}
			b.WriteString(rest[:n])
			slash = true // \D matches a slash
		default:
			b.WriteString(regexp.QuoteMeta(rest[:n]))
			slash = slash || c == '/'
		}
		rest = rest[n:]
	}
	if braces > 0 {
		return "", false, errors.New(`{ without }; write \{ for the character`)
	}
	return b.String(), slash, nil
}

// classLen returns the length of the character class at the start of s. Its syntax is
// that of regular expressions, and compile checks it.
func classLen(s string) (int, error) {
	i := 1
	switch {
	case strings.HasPrefix(s, "[!"):
		// The manual of rclone describes it as a negation, but it matches "!" there.
		return 0, errors.New(`[! is ambiguous: write [^ for a negation, and [\! for the character`)
	case strings.HasPrefix(s, "[^"):
		i = 2
	}
	for start := i; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case strings.HasPrefix(s[i:], "[:"):
			if end := strings.Index(s[i:], ":]"); end > 0 {
				i += end + 1
			}
		case s[i] == ']' && i > start:
			return i + 1, nil
		}
	}
	return 0, errors.New(`[ without ], or an empty class; write \[ for the character`)
}

// regexpLen returns the length of the {{regular expression}} at the start of s.
func regexpLen(s string) (int, error) {
	end := strings.Index(s, "}}")
	if end < 0 {
		return 0, errors.New("{{ without }}: it starts a regular expression")
	}
	for strings.HasPrefix(s[end+2:], "}") {
		end++ // the last braces count, as in {{a{2}}}
	}
	_, err := compile(s[2:end])
	return end + 2, err
}

// escapeLen returns the length of the backslash and the character at the start of s.
func escapeLen(s string) (int, error) {
	if len(s) == 1 {
		return 0, errors.New(`\ at the end; write \\ for the character`)
	}
	c := s[1]
	isLetter := c >= utf8.RuneSelf || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	if isLetter && !strings.ContainsRune("dDsSwW", rune(c)) {
		r, _ := utf8.DecodeRuneInString(s[1:])
		return 0, fmt.Errorf(`\%c has no meaning; write / between directories, and \\ for the character \`, r)
	}
	return 2, nil
}

// compile compiles a regular expression. The error does not repeat all of it.
func compile(expr string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(expr)
	if syntaxErr, ok := errors.AsType[*syntax.Error](err); ok {
		return nil, fmt.Errorf("%s: %s", syntaxErr.Code, syntaxErr.Expr)
	}
	return re, err
}
