package blob

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// NewFile returns the blob id, whose bytes are the first size bytes of the file
// at path. An empty blob needs no file. The last Release removes the file.
func NewFile(id, path string, size int64) *Blob {
	f := &file{path: path, n: size}
	return &Blob{id: id, storage: f, remove: func() error {
		_ = f.Close()
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}}
}

// file keeps the bytes in a file, which is open only while it is written.
type file struct {
	path string
	n    int64
	f    *os.File
}

func (b *file) Size() int64 { return b.n }

func (b *file) Append(p []byte, _ bool) (bool, error) {
	if b.f == nil {
		f, err := os.OpenFile(b.path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return false, err
		}
		b.f = f
	}
	// Use WriteAt, because after a partial write the next one must start at the end of
	// the committed bytes.
	n, err := b.f.WriteAt(p, b.n)
	if err == nil {
		b.n += int64(n)
	}
	return false, err
}

func (b *file) Truncate(size int64) error {
	if size >= b.n {
		return nil
	}
	if err := os.Truncate(b.path, size); err != nil {
		return err
	}
	b.n = size
	return nil
}

func (b *file) Section(from, to int64) (io.ReadCloser, error) {
	if b.n == 0 {
		return io.NopCloser(eofReader{}), nil // an empty object has no file
	}
	f, err := os.Open(b.path)
	if err != nil {
		return nil, err
	}
	return fileSection{io.NewSectionReader(f, from, min(to, b.n)-from), f}, nil
}

func (b *file) Close() error {
	if b.f == nil {
		return nil
	}
	f := b.f
	b.f = nil
	return f.Close()
}

type fileSection struct {
	*io.SectionReader
	file *os.File
}

func (s fileSection) Close() error { return s.file.Close() }

type eofReader struct{}

func (eofReader) Read([]byte) (int, error) { return 0, io.EOF }
