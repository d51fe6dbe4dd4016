package tree

// filter applies the patterns of Options. Its methods record in u which patterns
// match.
type filter struct{ include, exclude []*pattern }

// uses records which patterns of a filter matched. A nil *uses records nothing.
type uses struct{ include, exclude []bool }

func (f *filter) newUses() *uses {
	return &uses{make([]bool, len(f.include)), make([]bool, len(f.exclude))}
}

// unused returns the patterns that did not match.
func (f *filter) unused(u *uses) (include, exclude []string) {
	return unusedOf(f.include, u.include), unusedOf(f.exclude, u.exclude)
}

func unusedOf(patterns []*pattern, used []bool) (texts []string) {
	for i, p := range patterns {
		if !used[i] {
			texts = append(texts, p.text)
		}
	}
	return texts
}

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
func (f *filter) file(u *uses, rel string, included bool) bool {
	excluded, matched := f.match(u, rel, false)
	return !excluded && (included || matched)
}

// dir reports whether a directory is excluded, and whether it is included. above
// reports whether one of the directories above it is.
func (f *filter) dir(u *uses, rel string, above bool) (excluded, included bool) {
	excluded, matched := f.match(u, rel, true)
	return excluded, above || matched
}

// path is file, but also checks the directories of rel.
func (f *filter) path(u *uses, rel string) bool {
	if !f.active() {
		return true
	}
	included := f.all()
	for i := range len(rel) {
		if rel[i] != '/' {
			continue
		}
		var excluded bool
		if excluded, included = f.dir(u, rel[:i], included); excluded {
			return false
		}
	}
	return f.file(u, rel, included)
}

func (f *filter) match(u *uses, rel string, isDir bool) (excluded, included bool) {
	if u == nil {
		u = &uses{}
	}
	return matchAny(f.exclude, u.exclude, rel, isDir), matchAny(f.include, u.include, rel, isDir)
}

// matchAny reports whether one of the patterns matches. If used is not nil, it tries
// all that are not used yet.
func matchAny(patterns []*pattern, used []bool, rel string, isDir bool) (matched bool) {
	for i, p := range patterns {
		if matched && (used == nil || used[i]) {
			continue
		}
		if p.match(rel, isDir) {
			matched = true
			if used != nil {
				used[i] = true
			}
		}
	}
	return matched
}
