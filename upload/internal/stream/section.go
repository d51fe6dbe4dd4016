package stream

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"gcsup/chunk"
	"gcsup/internal/checksum"
)

// Section is a part of a divided [Stream], which other sections do not depend on. The caller that got it from
// [Stream.NextSection] must call Free.
type Section struct {
	chunk.Range        // within the stream
	CRC32C      uint32 // of the bytes of the section
	*Buffer
}

// division is how a stream is divided into sections.
type division struct {
	least    int64                    // bytes that a section can always have
	size     func(offset int64) int64 // of the section that begins at offset
	memory   account
	sections chan filledSection
}

// filledSection is a section, or the error that ended the stream.
type filledSection struct {
	section Section
	err     error
}

// account counts the memory of one divided stream.
type account struct {
	memory *Memory
	used   int64 // bytes of all its pieces; guarded by memory.mu
}

// HoldFirst makes the stream read nothing after its first part until Continue or Divide is called. It must be
// called before Head and Next.
func (s *Stream) HoldFirst() {
	s.after = make(chan *division, 1)
	s.streamReader.after = s.after
}

// Continue makes a stream continue after HoldFirst.
func (s *Stream) Continue() { s.after <- nil }

// Divide makes sections of the rest of the stream, which begins with the part that Next has returned. That part
// must not be the last one, and must have least bytes or more. size returns the size of the section that begins at an
// offset. The goroutine of the stream calls it, too. The sizes are rounded up to multiples of
// [chunk.Granularity].
//
// All sections that were not freed use at most the share of the stream, see [NewMemory]. While it is used up, or
// the budget, the stream reads nothing. If a section is the only one, it then ends, but not before it has least
// bytes. Divide is called after HoldFirst, instead of Continue. The stream then has no more parts for Next.
func (s *Stream) Divide(least int64, size func(offset int64) int64) {
	d := &division{least: least, size: size, sections: make(chan filledSection)}
	d.memory = account{memory: s.memory, used: int64(len(s.cur.pieces)) * chunk.Granularity}
	s.divided = d
	s.after <- d
}

// NextSection waits for the next section of a divided stream. After the last one it returns [io.EOF]. Other
// errors are those of Next.
func (s *Stream) NextSection(ctx context.Context) (Section, error) {
	switch {
	case s.end != nil:
		return Section{}, s.end
	case s.cur != nil:
		return s.cut(), nil
	}
	select {
	case <-s.stop:
		return Section{}, fmt.Errorf("stream: %w", fs.ErrClosed)
	case <-ctx.Done():
		return Section{}, fmt.Errorf("stream: %w", context.Cause(ctx))
	case f := <-s.divided.sections:
		s.end = f.err
		return f.section, f.err
	}
}

// cut returns the first section of the part that was read before the stream was divided.
func (s *Stream) cut() Section {
	d, cur := s.divided, s.cur
	size := max(chunk.Ceil(d.size(cur.From)), d.least)
	if cur.Len()-size < d.least {
		size = cur.Len()
	}
	n := size / chunk.Granularity
	end := cur.marks[n-1]
	section := Section{
		Range: chunk.Range{From: cur.From, To: cur.From + size}, CRC32C: between(cur.begin, end, size),
		Buffer: &Buffer{memory: s.memory, pieces: cur.pieces[:n:n], size: size, of: &d.memory},
	}
	cur.pieces, cur.marks, cur.begin, cur.From = cur.pieces[n:], cur.marks[n:], end, cur.From+size
	if cur.Len() == 0 {
		s.cur = nil
	}
	return section
}

// between returns the CRC32C of the last n bytes of a stream. before is that of the bytes before them, and whole
// that of all.
func between(before, whole uint32, n int64) uint32 { return checksum.Combine(before, whole, n) }

// divide reads sections until the stream ends.
func (f *streamReader) divide(d *division) {
	for ended := false; !ended; {
		section, err := f.fillSection(d)
		if section.size == 0 || err != nil && err != io.EOF {
			section.Free()
			section = Section{}
		}
		ended = err != nil
		if section.Buffer != nil && !f.hand(d, filledSection{section: section}) {
			section.Free()
			return
		}
		if ended {
			f.hand(d, filledSection{err: err})
		}
	}
}

// hand gives a section to NextSection. It returns false if the stream is closed.
func (f *streamReader) hand(d *division, s filledSection) bool {
	select {
	case d.sections <- s:
		return true
	case <-f.stop:
		return false
	}
}

// fillSection reads the next section. The section may have some bytes even if there is an error.
func (f *streamReader) fillSection(d *division) (Section, error) {
	b := &Buffer{memory: f.memory, of: &d.memory}
	want, before := max(chunk.Ceil(d.size(f.off)), d.least), f.crc
	var err error
	for b.size < want && err == nil {
		p := d.memory.take(b.size, d.least, f.stop)
		if p == nil {
			break
		}
		var n int
		n, err = f.fillPiece(p)
		b.pieces, b.size = append(b.pieces, p), b.size+int64(n)
	}
	rng := chunk.Range{From: f.off, To: f.off + b.size}
	section := Section{Range: rng, CRC32C: between(before, f.crc, b.size), Buffer: b}
	f.off = rng.To
	if err == nil && b.size == 0 {
		err = fs.ErrClosed // take returned nothing
	}
	if err != io.EOF {
		err = f.wrap(f.off, err)
	}
	return section, err
}

// take waits for a piece of a section that has size bytes. It returns nil if the section must end, or if stop is
// closed.
func (a *account) take(size, least int64, stop <-chan struct{}) *piece {
	m := a.memory
	for {
		m.mu.Lock()
		_, share := m.share()
		alone := a.used == size
		fits := m.budget == 0 || a.used+chunk.Granularity <= share && m.used+chunk.Granularity <= m.budget
		if fits || alone && size < least {
			a.used += chunk.Granularity
			m.used += chunk.Granularity
			m.mu.Unlock()
			return pieces.Get().(*piece)
		}
		if m.freed == nil {
			m.freed = make(chan struct{})
		}
		freed := m.freed
		m.mu.Unlock()
		if alone {
			return nil // nothing of the stream will be freed before this section is sent
		}
		select {
		case <-freed:
		case <-stop:
			return nil
		}
	}
}
