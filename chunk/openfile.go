package chunk

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// File is an open file: an [*os.File], or a file of an [fs.FS] that can be read at
// any offset.
type File interface {
	io.ReaderAt
	Stat() (fs.FileInfo, error)
}

// FromFile returns the bytes of f from an offset to its end as a Source. For a
// file that is not regular, the error wraps [ErrNotRegular]. f must stay open
// while the Source is used. Close does not close it.
//
// [Source.Identity] uses f.Stat. [Source.Settle] has an effect on an *os.File only.
func FromFile(f File, from int64) (*Source, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkRegular(info.Name(), info.Mode()); err != nil {
		return nil, err
	}
	if from < 0 || from > info.Size() {
		return nil, fmt.Errorf("open %s: the offset %d is not inside the file of %d bytes", info.Name(), from, info.Size())
	}
	size := info.Size() - from
	if info, err = checkSize(f, info.Name(), info); err != nil {
		return nil, err
	}
	s := &Source{
		r: io.NewSectionReader(f, from, size), size: size, from: from,
		open: f, sys: realSystem, info: info,
	}
	s.file, _ = f.(*os.File)
	return s, nil
}

// identify returns the identity of the open file, with the size of the Source.
func (s *Source) identify(info fs.FileInfo) (Identity, error) {
	if s.file == nil && runtime.GOOS == "windows" {
		id := newIdentity(info)
		id.Size -= s.from
		return id, nil
	}
	id, err := s.sys.identify(s.file, info)
	id.Size -= s.from
	return id, err
}
