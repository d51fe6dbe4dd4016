package blob

import (
	"errors"
	"io"
	"math/bits"
	"os"
	"sync"
)

// The sizes of blocks are powers of two from minBlock to maxBlock.
const (
	minBlock = 4 << 10
	maxBlock = Granularity
	orders   = 7 // minBlock << (orders-1) is maxBlock
)

// SpillError reports that bytes could not be written to the temporary file.
type SpillError struct{ Err error }

func (e *SpillError) Error() string { return "write to a temporary file: " + e.Err.Error() }
func (e *SpillError) Unwrap() error { return e.Err }

// spillFile is the file of a spill.
type spillFile interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Close() error
}

// spill is a temporary file of blocks, whose bytes do not fit into memory. The file
// exists from the first write. One file for all blobs needs one file descriptor, and no
// call of the file system for a small object except the write.
//
// The blocks are those of a buddy allocator: a block of order n has minBlock << n bytes,
// and begins at a multiple of that. mu is not held during reads and writes.
type spill struct {
	create func() (spillFile, error)
	mu     sync.Mutex // guards the fields below
	file   spillFile  // nil before the first write
	closed bool
	size   int64 // of the file, in whole blocks of maxBlock; a write may not have reached it yet
	free   [orders]blockSet
}

// block is a part of the file.
type block struct {
	off   int64
	order int
}

func newSpill(create func() (spillFile, error)) *spill { return &spill{create: create} }

// orderOf returns the order of the smallest block for n bytes.
func orderOf(n int) int { return bits.Len(uint(max(n-1, 0) / minBlock)) }

// write writes p to new blocks, all of maxBlock except for the last one. If it fails,
// nothing has changed.
func (s *spill) write(p []byte) ([]block, error) {
	file, blocks, err := s.take(len(p))
	if err != nil {
		return nil, &SpillError{err}
	}
	for i, b := range blocks {
		part := p[i*maxBlock : min(len(p), (i+1)*maxBlock)]
		if _, err := file.WriteAt(part, b.off); err != nil {
			s.release(blocks)
			return nil, &SpillError{err}
		}
	}
	return blocks, nil
}

// take returns blocks for n bytes, and the file.
func (s *spill) take(n int) (spillFile, []block, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, os.ErrClosed
	}
	if s.file == nil {
		file, err := s.create()
		if err != nil {
			return nil, nil, err
		}
		s.file = file
	}
	var blocks []block
	for ; n > 0; n -= maxBlock {
		blocks = append(blocks, s.takeLocked(orderOf(min(n, maxBlock))))
	}
	return s.file, blocks, nil
}

// takeLocked returns a block. It divides a larger one, or extends the file, if there is no
// free one of the order.
func (s *spill) takeLocked(order int) block {
	if off, ok := s.free[order].take(); ok {
		return block{off, order}
	}
	if order == orders-1 {
		s.size += maxBlock
		return block{s.size - maxBlock, order}
	}
	larger := s.takeLocked(order + 1)
	s.free[order].add(larger.off + minBlock<<order)
	return block{larger.off, order}
}

// release returns blocks that are no longer read or written. The file gets shorter if
// its end is free.
func (s *spill) release(blocks []block) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range blocks {
		for ; b.order < orders-1; b.order++ { // join it with the other half of the larger block
			half := int64(minBlock) << b.order
			if !s.free[b.order].remove(b.off ^ half) {
				break
			}
			b.off &^= half
		}
		s.free[b.order].add(b.off)
	}
	was := s.size
	for s.size > 0 && s.free[orders-1].remove(s.size-maxBlock) {
		s.size -= maxBlock
	}
	if s.size < was && s.file != nil {
		_ = s.file.Truncate(s.size) // if it fails, the next writes use the space
	}
}

// read reads bytes of a block, from the offset off of the block.
func (s *spill) read(p []byte, b block, off int64) (int, error) {
	s.mu.Lock()
	file, closed := s.file, s.closed
	s.mu.Unlock()
	if closed {
		return 0, os.ErrClosed
	}
	n, err := file.ReadAt(p, b.off+off)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // another process has truncated the file
	}
	return n, err
}

func (s *spill) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	return file.Close()
}

// tempFile is a temporary file. It has no name if the system allows to remove an open
// file, so that nothing remains if the process is killed. Windows does not allow it.
type tempFile struct {
	*os.File
	named bool
}

func createTemp() (spillFile, error) {
	f, err := os.CreateTemp("", "fakegcs-*.objects")
	if err != nil {
		return nil, err
	}
	return &tempFile{File: f, named: os.Remove(f.Name()) != nil}, nil
}

func (f *tempFile) Close() error {
	err := f.File.Close()
	if f.named {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
