package sourcefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"gcsup/chunk"
	"gcsup/internal/pagecache"
	"gcsup/internal/regular"
)

// File is a source whose file is watched. Its bytes are those of the [chunk.Source]. A File is safe for
// concurrent use.
type File struct {
	*chunk.Source
	open ReaderAt // nil for FromReaderAt
	file *os.File // open as an *os.File; nil if it is another ReaderAt
	path string   // absolute, because the working directory may change; "" if Open did not open it
	at   location // of path; nil if Open did not open it
	from int64    // offset in the file at which the source begins
	sys  system   // for open
	info fs.FileInfo

	begin func() (end func()) // see Record; nil if the reads are not recorded

	cache *pagecache.Cache // nil if Release has no effect
	start int64            // offset of the source in cache
}

// ReaderAt is an open file: an [*os.File], or a file of an [fs.FS] that can be read at
// any offset.
type ReaderAt interface {
	io.ReaderAt
	Stat() (fs.FileInfo, error)
}

// Open is like [chunk.Open].
func Open(path string) (*File, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	s, err := fromFile(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	s.at = followed(s.path)
	return s, nil
}

// location is where a file was opened.
type location interface {
	stat() (fs.FileInfo, error)     // the metadata of the file that has the name now
	dir() (dir *os.Root, err error) // its directory
	close()
}

// followed is a path whose links are followed.
type followed string

func (p followed) stat() (fs.FileInfo, error) { return os.Stat(string(p)) }
func (p followed) dir() (*os.Root, error)     { return os.OpenRoot(filepath.Dir(string(p))) }
func (p followed) close()                     {}

// cause returns the error of the system in an error with a path.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

func fromFile(f *os.File, path string) (*File, error) {
	size, info, err := regular.Examine(f, path)
	if err != nil {
		return nil, err
	}
	abs, err := absolute(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	s := &File{open: f, file: f, path: abs, sys: realSystem, info: info, cache: pagecache.New(f, size)}
	if s.cache != nil {
		s.Source = chunk.FromReaderAt(s.cache, size)
	} else {
		s.Source = chunk.FromReaderAt(f, size)
	}
	return s, nil
}

// absolute is filepath.Abs with one system call instead of three: it does not prefer the name
// of the working directory in $PWD.
func absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	dir, err := syscall.Getwd()
	if err != nil || runtime.GOOS == "windows" { // where a path may be relative to another drive
		return filepath.Abs(path)
	}
	return filepath.Join(dir, path), nil
}

// FromFile returns the bytes of f from an offset to its end. For a
// file that is not regular, the error wraps [chunk.ErrNotRegular]. f must stay open
// while the File is used. Close does not close it.
//
// [File.Identity] uses f.Stat. [File.Settle] has an effect on an *os.File only.
func FromFile(f ReaderAt, from int64) (*File, error) {
	size, info, err := regular.Examine(f, "")
	if err != nil {
		return nil, err
	}
	if from < 0 || from > size {
		return nil, fmt.Errorf("open %s: the offset %d is not inside the file of %d bytes", info.Name(), from, size)
	}
	size -= from
	s := &File{
		Source: chunk.FromReaderAt(io.NewSectionReader(f, from, size), size), from: from,
		open: f, sys: realSystem, info: info,
	}
	s.file, _ = f.(*os.File)
	return s, nil
}

// FromReaderAt is like [chunk.FromReaderAt]. There is no file to watch.
func FromReaderAt(r io.ReaderAt, size int64) *File {
	return &File{Source: chunk.FromReaderAt(r, size)}
}

// Section returns a range of the bytes. Its identity has only the size.
func (s *File) Section(r chunk.Range) *File {
	section := FromReaderAt(io.NewSectionReader(s, r.From, r.Len()), r.Len())
	section.cache, section.start = s.cache, s.start+r.From
	return section
}

// Release is called when the bytes of r will not be read again soon. On Linux, their pages leave the
// page cache, except those that were there before the File read them. A large file then does not
// replace what other programs need. It has no effect on a file of up to 8 MiB, on a file that the
// process does not own and may not write to, in a process with a seccomp filter, and if Open did not
// open the file.
func (s *File) Release(r chunk.Range) {
	if s.cache != nil {
		s.cache.Release(s.start+r.From, s.start+r.To)
	}
}

// Info returns the metadata of the file from when it was opened. Later reads change
// the access time. It is nil for [FromReaderAt].
func (s *File) Info() fs.FileInfo { return s.info }

// Opened returns the identity of the source when it was opened. Its size differs from
// the size of the source if the file was being written to.
func (s *File) Opened() (chunk.Identity, error) {
	if s.open == nil {
		return chunk.Identity{Size: s.Size()}, nil
	}
	return s.identify(s.info)
}

// Identity returns the current identity of the open file. If the path now names
// another file, as after a rename, the error wraps [chunk.ErrChanged]. If the file
// was removed, there is no error, because the open file still exists.
func (s *File) Identity() (chunk.Identity, error) {
	if s.open == nil {
		return chunk.Identity{Size: s.Size()}, nil
	}
	if s.begin != nil {
		defer s.begin()()
	}
	info, err := s.open.Stat()
	if err != nil {
		return chunk.Identity{}, fmt.Errorf("identity: %w: %w", chunk.ErrRead, err)
	}
	// An error of stat does not mean that the path names another file.
	if s.at != nil {
		if now, err := s.at.stat(); err == nil && !os.SameFile(info, now) {
			return chunk.Identity{}, fmt.Errorf("identity: %s was replaced by another file: %w", s.path, chunk.ErrChanged)
		}
	}
	return s.identify(info)
}

// identify returns the identity of the open file, with the size of the source.
func (s *File) identify(info fs.FileInfo) (chunk.Identity, error) {
	id, err := s.sys.identify(s.file, info)
	if err != nil {
		return chunk.Identity{}, err
	}
	id.Size -= s.from
	return id, nil
}

// Close closes the file that [Open] or [OpenBelow] opened. The arguments of [FromReaderAt] and
// [FromFile] stay open.
func (s *File) Close() error {
	if s.path == "" {
		return nil
	}
	s.at.close()
	return s.file.Close()
}
