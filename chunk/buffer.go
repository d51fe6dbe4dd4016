package chunk

import (
	"io"
	"iter"
)

// Buffer is memory for a number of bytes that is known, see [Memory.NewBuffer].
type Buffer struct {
	memory *Memory
	pieces []*piece
	size   int64
}

// NewBuffer returns a Buffer for size bytes, or nil if the budget is spent. Its bytes are
// not zero, because the memory was used before. The caller must call [Buffer.Free].
func (m *Memory) NewBuffer(size int64) *Buffer {
	n := (size + Granularity - 1) / Granularity
	m.mu.Lock()
	ok := m.budget == 0 || m.used+n*Granularity <= m.budget
	if ok {
		m.used += n * Granularity
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

// Pieces returns the memory in order, with the offset of each piece.
func (b *Buffer) Pieces() iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		for i, p := range b.pieces {
			from := int64(i) * Granularity
			if !yield(from, p[:min(Granularity, b.size-from)]) {
				return
			}
		}
	}
}

// Reader returns a reader of the bytes.
func (b *Buffer) Reader() io.Reader { return &partReader{b.pieces, 0, b.size} }

// Free gives the memory back. Neither the Buffer nor a reader of it may be used any more.
func (b *Buffer) Free() {
	b.memory.put(b.pieces)
	b.pieces, b.size = nil, 0
}
