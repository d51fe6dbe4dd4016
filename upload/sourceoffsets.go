package upload

import (
	"cmp"
	"slices"
	"sync"
)

// sourceOffsets maps offsets in compressed bytes to offsets in the file. It is safe
// for concurrent use. If known is false, the source is not compressed.
type sourceOffsets struct {
	mu    sync.Mutex
	known bool
	size  int64        // of the file
	marks []sourceMark // ascending
}

// sourceMark is a pair of offsets: when made bytes had been compressed, read bytes of
// the file had been read.
type sourceMark struct{ made, read int64 }

// reset replaces all marks by m. size is the size of the file.
func (s *sourceOffsets) reset(size int64, m sourceMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.size, s.marks = true, size, append(s.marks[:0], m)
}

// disable is called if the source is not compressed after all.
func (s *sourceOffsets) disable() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = false
}

// fileSize returns the size of the file. ok is false if it is not compressed.
func (s *sourceOffsets) fileSize() (size int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size, s.known
}

func (s *sourceOffsets) add(m sourceMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks = append(s.marks, m)
}

// forget removes the marks before a compressed offset. The bytes before it will not
// be sent again.
func (s *sourceOffsets) forget(offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.after(offset)
	s.marks = s.marks[max(i-1, 0):]
}

// read returns how many bytes of the file had been read when the compressed bytes
// before an offset were made.
func (s *sourceOffsets) read(offset int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.after(offset); i < len(s.marks) {
		return s.marks[i].read
	}
	return s.size
}

// after returns the index of the first mark at or after a compressed offset. The
// caller holds s.mu.
func (s *sourceOffsets) after(offset int64) int {
	i, _ := slices.BinarySearchFunc(s.marks, offset, func(m sourceMark, offset int64) int { return cmp.Compare(m.made, offset) })
	return i
}

// of returns the offsets of an event, or nil if no source is compressed.
func (s *sourceOffsets) of(sent, committed int64) *SourceOffsets {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known {
		return nil
	}
	return &SourceOffsets{Size: s.size, Sent: s.estimate(sent), Committed: s.estimate(committed)}
}

// estimate interpolates between two marks. The caller holds s.mu.
func (s *sourceOffsets) estimate(offset int64) int64 {
	var before sourceMark
	i := s.after(offset)
	if i > 0 {
		before = s.marks[i-1]
	}
	if i == len(s.marks) {
		return before.read
	}
	after := s.marks[i]
	if after.made == before.made {
		return after.read
	}
	share := float64(offset-before.made) / float64(after.made-before.made)
	return before.read + int64(share*float64(after.read-before.read))
}
