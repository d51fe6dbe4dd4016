package mirror

import (
	"strings"

	"gcsup/upload/tree"
)

// skippedNames has the names of files and directories that were skipped, as far as they concern
// names that follow. Each of them is a prefix of the newest name, so that there are
// not more of them than a name has bytes.
type skippedNames struct{ names []string }

// add adds a name. That of a directory ends in a slash. kind is that of the entry; "" means that it
// cannot be read.
func (s *skippedNames) add(name string, kind tree.Kind) {
	s.prune(name)
	s.names = append(s.names, name)
	if kind == tree.LeftOut || kind == tree.Vanished || name == "" || strings.HasSuffix(name, "/") {
		return
	}
	// What is not a file may lead to a directory.
	s.names = append(s.names, name+"/")
}

// has reports whether an object can be that of a skipped file, or of one in a skipped directory.
// The names must be in order.
func (s *skippedNames) has(object string) bool {
	s.prune(object)
	for _, name := range s.names {
		if name == object || (name == "" || strings.HasSuffix(name, "/")) && strings.HasPrefix(object, name) {
			return true
		}
	}
	return false
}

// prune removes the names that no name from next on can begin with.
func (s *skippedNames) prune(next string) {
	kept := s.names[:0]
	for _, name := range s.names {
		if strings.HasPrefix(next, strings.TrimSuffix(name, "/")) {
			kept = append(kept, name)
		}
	}
	s.names = kept
}
