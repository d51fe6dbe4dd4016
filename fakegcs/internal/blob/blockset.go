package blob

// blockSet is a set of free blocks of one size, by their offsets. Each method takes the same
// time for any number of blocks, which the first key of a map does not: a map that had many
// keys is searched for one that is left. The zero value is an empty set.
type blockSet struct {
	offsets []int64
	index   map[int64]int // in offsets
}

// add adds a block that s does not have.
func (s *blockSet) add(off int64) {
	if s.index == nil {
		s.index = map[int64]int{}
	}
	s.index[off] = len(s.offsets)
	s.offsets = append(s.offsets, off)
}

// remove removes a block, and reports whether s had it.
func (s *blockSet) remove(off int64) bool {
	i, ok := s.index[off]
	if !ok {
		return false
	}
	end := len(s.offsets) - 1
	last := s.offsets[end]
	s.offsets[i], s.index[last] = last, i
	s.offsets = s.offsets[:end]
	delete(s.index, off)
	return true
}

// take removes a block and returns it. ok is false if s is empty.
func (s *blockSet) take() (off int64, ok bool) {
	if len(s.offsets) == 0 {
		return 0, false
	}
	off = s.offsets[len(s.offsets)-1]
	return off, s.remove(off)
}
