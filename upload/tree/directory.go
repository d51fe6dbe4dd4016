package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
)

const batchSize = 512

// A walk in order keeps maxInMemory entries in memory, for all its open
// directories. A directory that does not fit is sorted on disk, if it has more
// than minInMemory entries. Tests use smaller values.
var maxInMemory, minInMemory, sorterMemory = 100_000, 1000, 0

// An entry is the name of a file or directory in a directory. The name of a
// directory has a slash at the end, which gives the order. A file that is being
// removed has the name that it had, and asideMark at the end.
type entry string

func (e entry) isDir() bool { return e[len(e)-1] == '/' }

// A lister returns the entries of a directory. next returns io.EOF at the end.
// It can continue after another error.
type lister interface {
	next() (entry, error)
	close()
}

// reader is a lister in the order of the file system.
type reader struct {
	file   *os.File
	path   string // of the directory, with a separator at the end or ""
	follow bool   // a link to a directory is a directory
	report bool   // the removal of the directory is an error
	batch  []fs.DirEntry
	err    error // to return after batch
}

// openReader reads the directory root, which has the given path.
func openReader(root *os.Root, path string, opts *Options) (*reader, error) {
	file, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	// A directory that os.Root opened calls lstat for each entry. Most entries need
	// another lstat later, and those of other shards need none.
	file, err = detach(file, path)
	if err != nil {
		return nil, err
	}
	return &reader{file: file, path: path, follow: opts.FollowSymlinks, report: opts.ReportLeftOut}, nil
}

func (r *reader) entry(d fs.DirEntry) entry {
	isDir := d.IsDir()
	if r.follow && d.Type()&fs.ModeSymlink != 0 {
		info, err := os.Stat(r.path + d.Name())
		isDir = err == nil && info.IsDir()
	}
	if isDir {
		return entry(d.Name() + "/")
	}
	return asideEntry(d.Name())
}

func (r *reader) next() (entry, error) {
	for {
		if len(r.batch) > 0 {
			e := r.entry(r.batch[0])
			r.batch = r.batch[1:]
			return e, nil
		}
		if err := r.err; err != nil {
			if ended(err) {
				if r.report && err != io.EOF {
					r.report = false // once
					return "", errVanished
				}
				return "", io.EOF
			}
			r.err = nil
			var pe *fs.PathError
			if !errors.As(err, &pe) || pe.Op != "fstatat" && pe.Op != "lstat" {
				r.err = io.EOF // the rest is not readable
			}
			return "", err
		}
		r.batch, r.err = r.file.ReadDir(batchSize)
	}
}

// ended reports whether a directory has no more entries. On Linux, a directory
// that was removed has none.
func ended(err error) bool { return err == io.EOF || errors.Is(err, fs.ErrNotExist) }

func (r *reader) close() { _ = r.file.Close() }

// sorted is a lister in the order of entries. errs are returned first.
type sorted struct {
	errs    []error
	entries []entry
	held    *int // entries in memory in all open directories

	// A directory that is sorted on disk.
	record func() ([]byte, error, bool)
	stop   func()
}

// sortEntries reads and closes r. It ends early if ctx is done.
func sortEntries(ctx context.Context, r lister, tempDir string, held *int) *sorted {
	defer r.close()
	s := &sorted{held: held}
	limit := max(maxInMemory-*held, minInMemory)
	for {
		e, err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			s.errs = append(s.errs, err)
			continue
		}
		if len(s.entries) == limit {
			s.sortOnDisk(ctx, r, e, tempDir)
			return s
		}
		s.entries = append(s.entries, e)
	}
	slices.Sort(s.entries)
	*held += len(s.entries)
	return s
}

// sortOnDisk sorts the entries so far, e, and the rest of r.
func (s *sorted) sortOnDisk(ctx context.Context, r lister, e entry, tempDir string) {
	sorter := newSorter(tempDir)
	var err error
	add := func(e entry) {
		if err == nil {
			err = sorter.Add([]byte(e))
		}
	}
	for _, e := range s.entries {
		add(e)
	}
	s.entries = nil
	add(e)
	for err == nil && ctx.Err() == nil {
		e, rerr := r.next()
		if rerr == io.EOF {
			break
		}
		if rerr != nil {
			s.errs = append(s.errs, rerr)
			continue
		}
		add(e)
	}
	if err != nil {
		sorter.Close()
		s.errs = append(s.errs, fmt.Errorf("%w: %w", ErrSort, err))
		return
	}
	next, stop := iter.Pull2(sorter.Sorted())
	s.record = next
	s.stop = func() { stop(); sorter.Close() }
}

func (s *sorted) next() (entry, error) {
	switch {
	case len(s.errs) > 0:
		err := s.errs[0]
		s.errs = s.errs[1:]
		return "", err
	case len(s.entries) > 0:
		e := s.entries[0]
		s.entries[0] = "" // the name can be freed
		s.entries = s.entries[1:]
		*s.held--
		return e, nil
	case s.record == nil:
		return "", io.EOF
	}
	record, err, ok := s.record()
	if !ok {
		return "", io.EOF
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrSort, err)
	}
	return entry(record), nil
}

func (s *sorted) close() {
	*s.held -= len(s.entries)
	if s.stop != nil {
		s.stop()
	}
}
