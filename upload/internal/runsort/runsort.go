// Package runsort sorts records that do not fit in memory. It sorts runs of
// records in memory, writes each run to a temporary file, and merges the runs.
//
//	s := runsort.New(bytes.Compare, nil)
//	defer s.Close()
//	for line := range lines {
//		if err := s.Add(line); err != nil {
//			return err
//		}
//	}
//	for record, err := range s.Sorted() {
//		...
//	}
//
// The sort is stable: records that compare as equal stay in the order in which they
// were added. If the records fit in memory, no file is written.
//
// On Unix a temporary file has no name while it is in use, so that nothing
// remains of a process that is killed. On other systems [Sorter.Close] and the
// end of [Sorter.Sorted] remove the files.
package runsort

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
)

const (
	defaultMemory = 8 << 20
	minMemory     = 64 << 10
	blockSize     = 64 << 10
	entrySize     = 12 // of an entry, in bytes

	// fanIn is the number of runs that are merged into a larger one. It bounds
	// the open files to fanIn per level, and their buffers with them.
	fanIn      = 64
	bufferSize = 16 << 10 // of each open run
)

// Options configure a [Sorter]. The zero value uses the defaults.
type Options struct {
	// Dir is the directory of the temporary files. "" is [os.TempDir], which
	// is kept in memory on some systems.
	Dir string

	// Memory is the size of a run in bytes. The Sorter uses about this much memory while
	// records are added, and 1 MiB for each 64 runs while it merges them. 0 is 8 MiB. The
	// minimum is 64 KiB.
	Memory int
}

// Sorter sorts records. It is not safe for concurrent use.
type Sorter struct {
	compare func(a, b []byte) int
	dir     string
	memory  int

	blocks  [][]byte // the bytes of entries
	entries []entry
	used    int      // bytes of records in blocks
	free    [][]byte // empty blocks of blockSize

	levels [][]*run // level i+1 has runs that are older and larger than those of level i
	err    error    // the first failure; every later call returns it
	closed bool
}

// entry is the position of a record in the blocks. Entries increase in the order in
// which records are added.
type entry struct{ block, off, len uint32 }

// ErrClosed means that the Sorter was closed, or that its records were already
// read.
var ErrClosed = errors.New("sorter is closed")

// New returns a Sorter that sorts by compare. A nil opts uses the defaults. The
// caller must read the records with Sorted, or call Close.
func New(compare func(a, b []byte) int, opts *Options) *Sorter {
	s := &Sorter{compare: compare, memory: defaultMemory}
	if opts != nil {
		s.dir = opts.Dir
		if opts.Memory > 0 {
			s.memory = max(opts.Memory, minMemory)
		}
	}
	return s
}

// Add adds a copy of record. If Add fails, for example because the disk is full, the
// Sorter can no longer be used.
func (s *Sorter) Add(record []byte) error {
	switch {
	case s.closed:
		return ErrClosed
	case s.err != nil:
		return s.err
	case uint64(len(record)) > math.MaxUint32:
		return fmt.Errorf("sort: record of %d bytes", len(record))
	}
	if len(s.entries) > 0 && s.used+len(record)+(len(s.entries)+1)*entrySize > s.memory {
		if err := s.spill(); err != nil {
			s.err = fmt.Errorf("sort: %w", err)
			return s.err
		}
	}
	last := len(s.blocks) - 1
	if last < 0 || len(s.blocks[last])+len(record) > cap(s.blocks[last]) {
		s.blocks = append(s.blocks, s.block(len(record)))
		last++
	}
	s.entries = append(s.entries, entry{uint32(last), uint32(len(s.blocks[last])), uint32(len(record))})
	s.blocks[last] = append(s.blocks[last], record...)
	s.used += len(record)
	return nil
}

// block returns an empty block with room for n bytes.
func (s *Sorter) block(n int) []byte {
	if n > blockSize {
		return make([]byte, 0, n)
	}
	if last := len(s.free) - 1; last >= 0 {
		b := s.free[last]
		s.free = s.free[:last]
		return b
	}
	return make([]byte, 0, blockSize)
}

// record returns the bytes of an entry.
func (s *Sorter) record(e entry) []byte {
	return s.blocks[e.block][e.off : e.off+e.len : e.off+e.len]
}

// sortEntries sorts the records in memory.
func (s *Sorter) sortEntries() {
	slices.SortFunc(s.entries, func(a, b entry) int {
		if c := s.compare(s.record(a), s.record(b)); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.block, b.block), cmp.Compare(a.off, b.off), cmp.Compare(a.len, b.len))
	})
}

// spill writes the records in memory to a new run.
func (s *Sorter) spill() error {
	s.sortEntries()
	r, err := writeRun(s.dir, func(yield func([]byte, error) bool) {
		for _, e := range s.entries {
			if !yield(s.record(e), nil) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	for _, b := range s.blocks {
		if cap(b) == blockSize {
			s.free = append(s.free, b[:0])
		}
	}
	clear(s.blocks)
	s.blocks, s.entries, s.used = s.blocks[:0], s.entries[:0], 0
	return s.push(0, r)
}

// push adds the newest run of a level. A full level becomes one run of the next.
func (s *Sorter) push(level int, r *run) error {
	if level == len(s.levels) {
		s.levels = append(s.levels, nil)
	}
	s.levels[level] = append(s.levels[level], r)
	if len(s.levels[level]) < fanIn {
		return nil
	}
	merged, err := writeRun(s.dir, merge(s.compare, s.levels[level]))
	if err != nil {
		return err
	}
	for _, old := range s.levels[level] {
		old.remove()
	}
	s.levels[level] = nil
	return s.push(level+1, merged)
}

// Sorted returns the records in order. A record is valid until the next one is
// requested. If the records cannot be read, the last pair has the error.
//
// The records can be read once. When the iteration ends, early or not, the
// Sorter is closed and its files are removed.
func (s *Sorter) Sorted() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := s.err
		if s.closed {
			err = ErrClosed
		}
		defer s.Close()
		if err == nil && len(s.levels) > 0 {
			if len(s.entries) > 0 {
				if err = s.spill(); err != nil {
					err = fmt.Errorf("sort: %w", err)
				}
			}
			s.release()
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if len(s.levels) == 0 {
			s.sortEntries()
			for _, e := range s.entries {
				if !yield(s.record(e), nil) {
					return
				}
			}
			return
		}
		var runs []*run // the oldest first
		for _, level := range slices.Backward(s.levels) {
			runs = append(runs, level...)
		}
		for record, err := range merge(s.compare, runs) {
			if err != nil {
				err = fmt.Errorf("sort: %w", err)
			}
			if !yield(record, err) {
				return
			}
		}
	}
}

// release releases the memory of the records.
func (s *Sorter) release() { s.blocks, s.entries, s.free = nil, nil, nil }

// Close removes the files. It may be called more than once, but not while the
// records are being read.
func (s *Sorter) Close() {
	s.closed = true
	s.release()
	for _, level := range s.levels {
		for _, r := range level {
			r.remove()
		}
	}
	s.levels = nil
}
