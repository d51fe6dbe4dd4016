package stream

import (
	"gcsup/chunk"
	"io"
	"iter"
)

// Buffer is memory of a fixed size from a [Memory], see [Memory.NewBuffer] and [Section].
type Buffer struct {
	memory *Memory
	pieces []*piece
	size   int64
	of     *account // nil unless it is a section of a stream
	grown  bool     // the section has memory beyond the share of its stream
	paid   int64    // bytes of that memory for which it has no pieces yet
}

// NewBuffer returns a Buffer for size bytes, or nil if they do not fit in the budget. It never
// waits. The Buffer counts as a multiple of [chunk.Granularity] bytes, and its content is
// undefined, because memory is reused. The caller must call [Buffer.Free].
func (m *Memory) NewBuffer(size int64) *Buffer {
	n := (size + chunk.Granularity - 1) / chunk.Granularity
	m.mu.Lock()
	ok := m.budget == 0 || m.used+n*chunk.Granularity <= m.budget
	if ok {
		m.used += n * chunk.Granularity
	}
	m.mu.Unlock()
	if !ok {
		return nil
	}
	b := &Buffer{memory: m, size: size, pieces: make([]*piece, n)}
	for i := range b.pieces {
		b.pieces[i] = pieces.Get().(*piece)
	}
	return b
}

// Pieces returns the memory in order, in slices of up to [chunk.Granularity] bytes, each with its
// offset in the Buffer. The caller fills the Buffer through these slices.
func (b *Buffer) Pieces() iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		for i, p := range b.pieces {
			from := int64(i) * chunk.Granularity
			if !yield(from, p[:min(chunk.Granularity, b.size-from)]) {
				return
			}
		}
	}
}

// Reader returns a new reader of the whole Buffer.
func (b *Buffer) Reader() io.Reader { return &partReader{b.pieces, 0, b.size} }

// Free returns the memory to the budget. The Buffer, its slices and its readers must not be
// used afterwards.
func (b *Buffer) Free() {
	if b.of == nil {
		b.memory.put(b.pieces)
	} else {
		b.memory.recycle(b.pieces)
		b.of.give(b, int64(len(b.pieces))*chunk.Granularity+b.paid)
	}
	b.pieces, b.size = nil, 0
}
