package tree

// filter applies the patterns of Options.
type filter struct{ include, exclude []*pattern }

func newFilter(include, exclude []string) (f filter, err error) {
	if f.include, err = parsePatterns(include); err != nil {
		return filter{}, err
	}
	f.exclude, err = parsePatterns(exclude)
	return f, err
}

func parsePatterns(texts []string) (patterns []*pattern, err error) {
	for _, text := range texts {
		p, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

// active reports whether there are patterns. Without patterns, callers need no
// relative paths.
func (f *filter) active() bool { return len(f.include)+len(f.exclude) > 0 }

// all reports whether a file is selected even if it matches no pattern of include.
func (f *filter) all() bool { return len(f.include) == 0 }

// file reports whether the patterns select a file. None of its directories may be
// excluded, and included reports whether one of them is included.
func (f *filter) file(rel string, included bool) bool {
	return !matchAny(f.exclude, rel, false) && (included || matchAny(f.include, rel, false))
}

// dir reports whether a directory is excluded, and whether it is included. above
// reports whether one of the directories above it is.
func (f *filter) dir(rel string, above bool) (excluded, included bool) {
	return matchAny(f.exclude, rel, true), above || matchAny(f.include, rel, true)
}

// path is file, but also checks the directories of rel.
func (f *filter) path(rel string) bool {
	if !f.active() {
		return true
	}
	included := f.all()
	for i := range len(rel) {
		if rel[i] != '/' {
			continue
		}
		var excluded bool
		if excluded, included = f.dir(rel[:i], included); excluded {
			return false
		}
	}
	return f.file(rel, included)
}

func matchAny(patterns []*pattern, rel string, isDir bool) bool {
	for _, p := range patterns {
		if p.match(rel, isDir) {
			return true
		}
	}
	return false
}
