package stream

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"

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
	least    int64 // bytes that a section can always have
	sizes    Sizes
	memory   account
	sections chan filledSection
}

// Sizes returns the size that the section which begins at an offset should have, and the one that it must have, even if
// the stream waits for the memory of others.
type Sizes func(offset int64) (want, must int64)

// at returns the sizes of the section that begins at offset, rounded up.
func (d *division) at(offset int64) (want, must int64) {
	want, must = d.sizes(offset)
	must = max(chunk.Ceil(must), d.least)
	return max(chunk.Ceil(want), must), must
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

// Hold makes the stream read at most one part after its first one, of ahead bytes, until Continue or Divide is called.
// noticed is closed when that part has notice bytes. Both are multiples of [chunk.Granularity]. Hold must be called
// before Head and Next.
func (s *Stream) Hold(ahead, notice int64) (noticed <-chan struct{}) {
	s.after, s.enough = make(chan *division, 1), make(chan struct{})
	s.streamReader.after = s.after
	if ahead > 0 {
		e := &early{limit: ahead, notice: notice, noticed: make(chan struct{}), enough: s.enough, done: make(chan filled, 1)}
		s.streamReader.early, s.ahead, noticed = e, e.done, e.noticed
	}
	return noticed
}

// Ahead waits for the part after the first one, which Hold lets the stream read, and reports whether it ends the
// stream. The error is that of the reader, or of ctx. Only after an error of ctx may Ahead be called again.
func (s *Stream) Ahead(ctx context.Context) (last bool, err error) {
	select {
	case <-s.stop:
		return false, fmt.Errorf("stream: %w", fs.ErrClosed)
	case <-ctx.Done():
		return false, fmt.Errorf("stream: %w", context.Cause(ctx))
	case f := <-s.ahead:
		return f.part.Last, f.err
	}
}

// Continue makes a stream continue after Hold. A part that is being read ahead ends.
func (s *Stream) Continue() { s.follow(nil) }

func (s *Stream) follow(d *division) {
	close(s.enough)
	s.after <- d
}

// Divide makes sections of the rest of the stream, which begins with the part that Next has returned. That part
// must not be the last one, and must have least bytes or more. The goroutine of the stream calls sizes, too. The sizes
// are rounded up to multiples of [chunk.Granularity]. Of a stream that was not read, Divide makes sections from its
// beginning.
//
// All sections that were not freed use at most the share of the stream, see [NewMemory]. While it is used up, or
// the budget, the stream reads nothing. If a section is the only one, it then ends, but not before it has least
// bytes, which it can always have, nor before it has the bytes that it must have: for those, streams wait in turn until
// they fit in the budget, whatever their shares are. One section has them even if they do not fit, so that some stream
// always continues. A section must not have more than the budget.
//
// Divide is called after Hold, instead of Continue, unless the stream was not read. The stream then has no more parts for
// Next.
func (s *Stream) Divide(least int64, sizes Sizes) {
	d := &division{least: least, sizes: sizes, sections: make(chan filledSection)}
	d.memory.memory, s.divided = s.memory, d
	if s.cur == nil {
		s.streamReader.divided = d
		s.start()
		return
	}
	d.memory.used = int64(len(s.cur.pieces)) * chunk.Granularity
	s.follow(d)
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
	size, _ := s.divided.at(s.cur.From)
	if s.cur.Len()-size < s.divided.least {
		size = s.cur.Len()
	}
	section := s.cur.cut(s.divided, size)
	if s.cur.Len() == 0 {
		s.cur = nil
	}
	return section
}

// cut removes the first size bytes of the part, and returns them as a section.
func (p *Part) cut(d *division, size int64) Section {
	n := (size + chunk.Granularity - 1) / chunk.Granularity
	end := p.CRC32C
	if size < p.Len() {
		end = p.marks[n-1]
	}
	section := Section{
		Range: chunk.Range{From: p.From, To: p.From + size}, CRC32C: between(p.begin, end, size),
		Buffer: &Buffer{memory: d.memory.memory, pieces: p.pieces[:n:n], size: size, of: &d.memory},
	}
	p.pieces, p.marks, p.begin, p.From = p.pieces[n:], p.marks[min(n, int64(len(p.marks))):], end, p.From+size
	return section
}

// between returns the CRC32C of the last n bytes of a stream. before is that of the bytes before them, and whole
// that of all.
func between(before, whole uint32, n int64) uint32 { return checksum.Combine(before, whole, n) }

// divide makes sections of the part that was read ahead, if there is one, and reads further ones until the stream ends.
func (f *streamReader) divide(d *division, next filled) {
	rest, ended := &next.part, next.err != nil || next.part.Last
	f.memory.mu.Lock()
	d.memory.used += int64(len(rest.pieces)) * chunk.Granularity
	f.memory.mu.Unlock()
	for {
		size, _ := d.at(rest.From)
		if whole := rest.Len()-size < d.least; whole && !rest.Last || rest.Len() == 0 {
			break // the rest is the beginning of the next section
		} else if whole {
			size = rest.Len()
		}
		if section := rest.cut(d, size); !f.hand(d, filledSection{section: section}) {
			section.Free()
			d.memory.free(rest)
			return
		}
	}
	if ended {
		d.memory.free(rest) // the last piece may have no bytes
		f.hand(d, filledSection{err: cmp.Or(next.err, io.EOF)})
	}
	for !ended {
		section, err := f.fillSection(d, rest)
		rest = &Part{}
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

// free frees what a part that was read ahead has not given to sections.
func (a *account) free(p *Part) { (&Buffer{memory: a.memory, pieces: p.pieces, of: a}).Free() }

// hand gives a section to NextSection. It returns false if the stream is closed.
func (f *streamReader) hand(d *division, s filledSection) bool {
	select {
	case d.sections <- s:
		return true
	case <-f.stop:
		return false
	}
}

// fillSection reads the next section. It begins with the bytes of rest, if there are any. The section may have some bytes
// even if there is an error.
func (f *streamReader) fillSection(d *division, rest *Part) (Section, error) {
	b := &Buffer{memory: f.memory, of: &d.memory, pieces: rest.pieces, size: rest.Len()}
	before := f.crc
	if b.size > 0 {
		f.off, before = rest.From, rest.begin
	}
	want, must := d.at(f.off)
	var err error
	for b.size < want && err == nil {
		p := d.memory.take(b, d.least, must, f.stop)
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

// take waits for a piece of the section b. It returns nil if the section must end, or if stop is closed.
func (a *account) take(b *Buffer, least, must int64, stop <-chan struct{}) *piece {
	for {
		granted, freed := a.grant(b, least, must)
		switch {
		case granted:
			return pieces.Get().(*piece)
		case freed == nil:
			return nil
		}
		select {
		case <-freed:
		case <-stop:
			a.memory.mu.Lock()
			a.leaveTurns()
			a.memory.mu.Unlock()
			return nil
		}
	}
}

// grant counts a piece of the section b, if there is memory for it. If there is not, freed is closed when there may be
// more, or nil if the section must end.
func (a *account) grant(b *Buffer, least, must int64) (granted bool, freed <-chan struct{}) {
	m := a.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	_, share := m.share()
	alone := a.used == b.size // nothing of the stream will be freed before this section is sent
	switch {
	case b.paid > 0:
		b.paid -= chunk.Granularity
		return true, nil
	case m.budget == 0 || a.used+chunk.Granularity <= share && m.used+chunk.Granularity <= m.budget || alone && b.size < least:
		a.count(chunk.Granularity)
		a.leaveTurns() // if its share has grown meanwhile
		return true, nil
	case alone && b.size >= must:
		return false, nil
	case alone && a.turn(must-b.size):
		a.count(must - b.size)
		b.grown, b.paid = true, must-b.size-chunk.Granularity
		m.grown++
		return true, nil
	}
	if m.freed == nil {
		m.freed = make(chan struct{})
	}
	return false, m.freed
}

// turn reports whether it is the turn of the stream to have n bytes beyond its share. The caller holds memory.mu.
func (a *account) turn(n int64) bool {
	m := a.memory
	if !slices.Contains(m.turns, a) {
		m.turns = append(m.turns, a)
	}
	if m.turns[0] != a || m.grown > 0 && m.used+n > m.budget {
		return false
	}
	a.leaveTurns()
	return true
}

// leaveTurns makes the stream wait for a turn no longer. The caller holds memory.mu.
func (a *account) leaveTurns() {
	m := a.memory
	if i := slices.Index(m.turns, a); i >= 0 {
		m.turns = slices.Delete(m.turns, i, i+1)
		m.wake() // it may be the turn of the next one
	}
}

// count counts n bytes more. The caller holds memory.mu.
func (a *account) count(n int64) {
	a.used += n
	a.memory.used += n
}

// give takes the n bytes of the section b back.
func (a *account) give(b *Buffer, n int64) {
	m := a.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	a.count(-n)
	if b.grown {
		m.grown--
	}
	b.grown, b.paid = false, 0
	m.wake()
}
