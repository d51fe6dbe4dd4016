package runsort

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"os"
)

// run is a temporary file with sorted records. The length of each record precedes it,
// as a uvarint.
type run struct {
	file *os.File
	name string // "" if the file has no name any more
	size int64  // bytes written; the file must not be shorter
}

// writeRun writes records to a new run in dir.
func writeRun(dir string, records iter.Seq2[[]byte, error]) (_ *run, err error) {
	file, err := os.CreateTemp(dir, ".gcsup-sort-*")
	if err != nil {
		return nil, err
	}
	r := &run{file: file, name: file.Name()}
	if os.Remove(r.name) == nil { // fails on Windows, because the file is open
		r.name = ""
	}
	defer func() {
		if err != nil {
			r.remove()
		}
	}()
	w := bufio.NewWriterSize(file, bufferSize)
	var head [binary.MaxVarintLen64]byte
	for record, err := range records {
		if err != nil {
			return nil, err
		}
		n := binary.PutUvarint(head[:], uint64(len(record)))
		_, _ = w.Write(head[:n]) // Flush reports an error of any Write
		_, _ = w.Write(record)
		r.size += int64(n + len(record))
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	return r, nil
}

// remove closes and removes the file.
func (r *run) remove() {
	_ = r.file.Close()
	if r.name != "" {
		_ = os.Remove(r.name)
	}
}

// cursor reads a run.
type cursor struct {
	r      *bufio.Reader
	left   int64  // bytes that are not read yet
	record []byte // the current one
	order  int    // of the run: the oldest is 0
}

// open returns a cursor before the first record.
func (r *run) open(order int) *cursor {
	return &cursor{r: bufio.NewReaderSize(io.NewSectionReader(r.file, 0, r.size), bufferSize), left: r.size, order: order}
}

// next reads the next record. It returns false at the end.
func (c *cursor) next() (bool, error) {
	if c.left == 0 {
		return false, nil
	}
	n, err := binary.ReadUvarint(c.r)
	if err == nil && n > uint64(c.left) {
		err = errors.New("the temporary file is damaged")
	}
	if err != nil {
		return false, noEOF(err)
	}
	if uint64(cap(c.record)) < n {
		c.record = make([]byte, n, n+n/4)
	}
	c.record = c.record[:n]
	if _, err := io.ReadFull(c.r, c.record); err != nil {
		return false, noEOF(err)
	}
	c.left -= int64(uvarintLen(n)) + int64(n)
	return true, nil
}

// noEOF returns err, but reports the end of a file as unexpected.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func uvarintLen(n uint64) int {
	var head [binary.MaxVarintLen64]byte
	return binary.PutUvarint(head[:], n)
}

// merge returns the records of runs in order. Of equal records, those of an
// earlier run come first.
func merge(compare func(a, b []byte) int, runs []*run) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		h := heap{compare: compare}
		for i, r := range runs {
			c := r.open(i)
			ok, err := c.next()
			if err != nil {
				yield(nil, err)
				return
			}
			if ok {
				h.cursors = append(h.cursors, c)
			}
		}
		for i := len(h.cursors)/2 - 1; i >= 0; i-- {
			h.down(i)
		}
		for len(h.cursors) > 0 {
			least := h.cursors[0]
			if !yield(least.record, nil) {
				return
			}
			ok, err := least.next()
			if err != nil {
				yield(nil, err)
				return
			}
			if !ok {
				last := len(h.cursors) - 1
				h.cursors[0] = h.cursors[last]
				h.cursors = h.cursors[:last]
			}
			h.down(0)
		}
	}
}

// heap is a binary heap of cursors, the one with the least record first.
type heap struct {
	compare func(a, b []byte) int
	cursors []*cursor
}

func (h *heap) less(i, j int) bool {
	a, b := h.cursors[i], h.cursors[j]
	if c := h.compare(a.record, b.record); c != 0 {
		return c < 0
	}
	return a.order < b.order
}

// down restores the order below i, after its cursor was advanced or replaced.
func (h *heap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.cursors) {
			return
		}
		if child+1 < len(h.cursors) && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			return
		}
		h.cursors[i], h.cursors[child] = h.cursors[child], h.cursors[i]
		i = child
	}
}
