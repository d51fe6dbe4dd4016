package spool

import (
	"io"
	"io/fs"
	"os"

	"gcsup/internal/nolink"
)

// disk has the operations on the directory of one stream. A test replaces it to simulate a
// power loss.
type disk interface {
	Create(name string) (file, error) // for writing and reading; the file must not exist
	Open(name string) (file, error)   // for reading and Sync
	Names() ([]string, error)
	Rename(from, to string) error
	Remove(name string) error
	Sync() error // writes the names to the disk, not the content of the files
	Close() error
}

type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
	Size() (int64, error)
}

// rootDisk is a directory.
type rootDisk struct{ *os.Root }

func (d rootDisk) Create(name string) (file, error) {
	return openFile(d.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600))
}

func (d rootDisk) Open(name string) (file, error) {
	return openFile(d.OpenFile(name, os.O_RDWR, 0)) // Windows syncs only a file that is open for writing
}

func openFile(f *os.File, err error) (file, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d rootDisk) Names() ([]string, error) {
	entries, err := fs.ReadDir(d.FS(), ".")
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (d rootDisk) Sync() error { return nolink.SyncDir(d.Root) }

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
