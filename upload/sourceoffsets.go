package upload

import (
	"cmp"
	"slices"
	"sync"
)

// sourceOffsets maps offsets in compressed bytes to offsets in the file that they
// are made of. It is safe for concurrent use. A nil *sourceOffsets, and one
// without a size, have no source that is compressed.
type sourceOffsets struct {
	mu    sync.Mutex
	known bool
	size  int64        // of the file
	marks []sourceMark // ascending
}

// sourceMark is how much was read of a file when so many compressed bytes were
// made.
type sourceMark struct{ made, read int64 }

// reset forgets all marks but one. size is that of the file.
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

// forget drops the marks before a compressed offset that will not be sent again.
func (s *sourceOffsets) forget(offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.after(offset)
	s.marks = s.marks[max(i-1, 0):]
}

// read returns an offset in the file to which the compressed bytes before an offset
// belong: as many bytes had been read when they were made.
func (s *sourceOffsets) read(offset int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.after(offset); i < len(s.marks) {
		return s.marks[i].read
	}
	return s.size
}

// after returns the index of the first mark at or after a compressed offset. s.mu
// is held.
func (s *sourceOffsets) after(offset int64) int {
	i, _ := slices.BinarySearchFunc(s.marks, offset, func(m sourceMark, offset int64) int { return cmp.Compare(m.made, offset) })
	return i
}

// of returns the offsets of an event, or nil if no source is compressed.
func (s *sourceOffsets) of(sent, committed int64) *SourceOffsets {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known {
		return nil
	}
	return &SourceOffsets{Size: s.size, Sent: s.estimate(sent), Committed: s.estimate(committed)}
}

// estimate interpolates between two marks. s.mu is held.
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
