package tree

import (
	"fmt"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// filter applies the patterns of Options.
type filter struct{ include, exclude []string }

func newFilter(include, exclude []string) (filter, error) {
	for _, p := range append(include[:len(include):len(include)], exclude...) {
		switch {
		case !doublestar.ValidatePattern(p):
			return filter{}, fmt.Errorf("%w: pattern %q: syntax error", ErrUsage, p)
		case p == "", strings.HasPrefix(p, "/"), strings.HasSuffix(p, "/"), strings.HasPrefix(p, "./"), strings.HasPrefix(p, "../"):
			return filter{}, fmt.Errorf("%w: pattern %q never matches: paths are relative to the source, without a slash at the end", ErrUsage, p)
		}
	}
	return filter{include, exclude}, nil
}

// active reports whether there are patterns. Without patterns, callers need no
// relative paths.
func (f *filter) active() bool { return len(f.include)+len(f.exclude) > 0 }

// excludes reports whether a file or directory is excluded.
func (f *filter) excludes(rel string) bool { return matchAny(f.exclude, rel) }

// takes reports whether the patterns select a file. None of its directories may be
// excluded.
func (f *filter) takes(rel string) bool {
	return !f.excludes(rel) && (len(f.include) == 0 || matchAny(f.include, rel))
}

// takesPath is takes, but also checks the directories of rel.
func (f *filter) takesPath(rel string) bool {
	if !f.active() {
		return true
	}
	for i := range len(rel) {
		if rel[i] == '/' && f.excludes(rel[:i]) {
			return false
		}
	}
	return f.takes(rel)
}

func matchAny(patterns []string, rel string) bool {
	for _, p := range patterns {
		if doublestar.MatchUnvalidated(p, rel) {
			return true
		}
	}
	return false
}
