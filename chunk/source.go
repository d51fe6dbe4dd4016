package chunk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Source is content that can be read at any offset and more than once. The zero
// value is empty. A Source is safe for concurrent use.
type Source struct {
	r    io.ReaderAt
	size int64
	open File     // nil for FromReaderAt
	file *os.File // open as an *os.File; nil if it is another File
	path string   // absolute, because the working directory may change; "" if Open did not open it
	at   location // of path; nil if Open did not open it
	from int64    // offset in the file at which the source begins
	sys  system   // for open
	info fs.FileInfo

	cache *pageCache // nil if Release has no effect
	start int64      // offset of the Source in cache
}

// Open opens the regular file at path. If it does not exist, or the operating system does
// not open it, the error wraps [ErrOpen]. For anything else, and for a file with more
// content than its size, such as those in /proc, the error wraps [ErrNotRegular] and
// contains advice. Open never blocks on a named pipe.
func Open(path string) (*Source, error) {
	f, err := openRegular(path)
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

func fromFile(f *os.File, path string) (*Source, error) {
	// Check again, because the path may name another file now.
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkRegular(path, info.Mode()); err != nil {
		return nil, err
	}
	size := info.Size()
	if info, err = checkSize(f, path, info); err != nil {
		return nil, err
	}
	abs, err := absolute(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	s := &Source{r: f, size: size, open: f, file: f, path: abs, sys: realSystem, info: info}
	if s.cache = newPageCache(f, size); s.cache != nil {
		s.r = cachedFile{f, s.cache}
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

func checkRegular(path string, mode fs.FileMode) error {
	var what string
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "a directory: name the files in it"
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe: upload it as a stream"
	case mode&fs.ModeDevice != 0:
		what = "a device: upload it as a stream"
	case mode&fs.ModeSocket != 0:
		what = "a socket: it has no content to upload"
	default:
		what = fmt.Sprintf("of type %v: upload a copy of its content", mode.Type())
	}
	return fmt.Errorf("open %s: %w but %s", path, ErrNotRegular, what)
}

// checkSize returns an error if the file has content after its size. The files
// of /proc and some of FUSE have size 0 and content. A file that is being
// written to is accepted: checkSize returns its new metadata, and
// [Source.Opened] reports that its size has changed.
func checkSize(f File, path string, info fs.FileInfo) (fs.FileInfo, error) {
	switch n, err := f.ReadAt(make([]byte, 1), info.Size()); {
	case n > 0:
	case err == nil || errors.Is(err, io.EOF):
		return info, nil
	default:
		return nil, fmt.Errorf("open %s: %w: %w", path, ErrRead, err)
	}
	now, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if now.Size() != info.Size() {
		return now, nil
	}
	return nil, fmt.Errorf("open %s: %w but a file with more content than its size of %d bytes: upload it as a stream", path, ErrNotRegular, info.Size())
}

// FromReaderAt returns the first size bytes of r as a Source. r must always
// return the same bytes. The identity of the Source has only the size.
// FromReaderAt panics if size is negative.
func FromReaderAt(r io.ReaderAt, size int64) *Source {
	if size < 0 {
		panic(fmt.Sprintf("chunk: FromReaderAt: negative size %d", size))
	}
	return &Source{r: r, size: size}
}

// Section returns a range of the bytes as a Source. Its identity has only the size.
func (s *Source) Section(r Range) *Source {
	section := FromReaderAt(io.NewSectionReader(s, r.From, r.Len()), r.Len())
	section.cache, section.start = s.cache, s.start+r.From
	return section
}

// Release is called when the bytes of r will not be read again soon. On Linux, their pages leave the
// page cache, except those that were there before the Source read them. A large file then does not
// replace what other programs need. It has no effect on a file of up to 8 MiB, on a file that the
// process does not own and may not write to, in a process with a seccomp filter, and if Open did not
// open the file.
func (s *Source) Release(r Range) {
	if s.cache != nil {
		s.cache.release(Range{s.start + r.From, s.start + r.To})
	}
}

// Info returns the metadata of the file from when it was opened. Later reads change
// the access time. It is nil for [FromReaderAt].
func (s *Source) Info() fs.FileInfo { return s.info }

// Size returns the number of bytes in the source when it was opened.
func (s *Source) Size() int64 { return s.size }

// Opened returns the identity of the source when it was opened. Its size differs from
// [Source.Size] if the file was being written to.
func (s *Source) Opened() (Identity, error) {
	if s.open == nil {
		return Identity{Size: s.size}, nil
	}
	id, err := s.identify(s.info)
	if err != nil {
		return Identity{}, fmt.Errorf("identity: %w: %w", ErrRead, err)
	}
	return id, nil
}

// Identity returns the current identity of the open file. If the path now names
// another file, as after a rename, the error wraps [ErrChanged]. If the file
// was removed, there is no error, because the open file still exists.
func (s *Source) Identity() (Identity, error) {
	if s.open == nil {
		return Identity{Size: s.size}, nil
	}
	info, err := s.open.Stat()
	if err != nil {
		return Identity{}, fmt.Errorf("identity: %w: %w", ErrRead, err)
	}
	// An error of stat does not mean that the path names another file.
	if s.at != nil {
		if now, err := s.at.stat(); err == nil && !os.SameFile(info, now) {
			return Identity{}, fmt.Errorf("identity: %s was replaced by another file: %w", s.path, ErrChanged)
		}
	}
	id, err := s.identify(info)
	if err != nil {
		return Identity{}, fmt.Errorf("identity: %w: %w", ErrRead, err)
	}
	return id, nil
}

// ReadAt implements [io.ReaderAt]. The source ends at [Source.Size], even if
// the file has grown.
func (s *Source) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read: negative offset %d", off)
	}
	if off >= s.size {
		return 0, io.EOF
	}
	left := s.size - off
	if int64(len(p)) <= left {
		return s.r.ReadAt(p, off)
	}
	n, err := s.r.ReadAt(p[:left], off)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// ReadFull fills p from off. Its error wraps [ErrChanged] if the source is too
// short, and [ErrRead] if it cannot be read. An error that the source returns with
// all bytes counts, too: a reader that compares a checksum finds it with the last byte.
func (s *Source) ReadFull(p []byte, off int64) error {
	n, err := s.ReadAt(p, off)
	ended := err == nil || errors.Is(err, io.EOF)
	switch {
	case n == len(p) && ended:
		return nil
	case ended || n < len(p) && errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read: source ends at byte %d, before %d: %w: %w",
			off+int64(n), off+int64(len(p)), ErrChanged, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("read: at byte %d: %w: %w", off+int64(n), ErrRead, err)
}

// Hash reads the source from c to the offset to and returns the checkpoint at
// to. The error wraps [ErrChanged] if the source ends before to, [ErrRead] if
// the source cannot be read, or the cause of ctx.
func (s *Source) Hash(ctx context.Context, c Checkpoint, to int64) (Checkpoint, error) {
	if c.Offset < 0 || to < c.Offset {
		return Checkpoint{}, fmt.Errorf("hash: invalid range from %d to %d", c.Offset, to)
	}
	buf := buffers.Get().(*buffer)
	defer buffers.Put(buf)
	for c.Offset < to {
		if ctx.Err() != nil {
			return Checkpoint{}, fmt.Errorf("hash: %w", context.Cause(ctx))
		}
		p := buf[:min(int64(len(buf)), to-c.Offset)]
		if err := s.ReadFull(p, c.Offset); err != nil {
			return Checkpoint{}, fmt.Errorf("hash: %w", err)
		}
		c = Checkpoint{c.Offset + int64(len(p)), Update(c.CRC32C, p)}
	}
	return c, nil
}

// Close closes the file that [Open] opened. The arguments of [FromReaderAt] and
// [FromFile] stay open.
func (s *Source) Close() error {
	if s.path == "" {
		return nil
	}
	s.at.close()
	return s.file.Close()
}
