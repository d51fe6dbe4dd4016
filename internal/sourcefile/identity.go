package sourcefile

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"gcsup/chunk"
	"gcsup/internal/nolink"
	"gcsup/internal/regular"
)

// Change describes how two identities differ.
type Change int

const (
	// Same means that no field of the identity has changed.
	Same Change = iota
	// ChangeTimeOnly means that size, modification time and inode are equal,
	// but the change time or the device number is not. The cause may be
	// harmless, such as a chmod or a new mount of the file system. It may also
	// be an edit after which the modification time was restored. Read the bytes
	// again and compare them before they are used.
	ChangeTimeOnly
	// Different means other content or another file.
	Different
)

// String returns the name of c.
func (c Change) String() string {
	switch c {
	case Same:
		return "same"
	case ChangeTimeOnly:
		return "change time only"
	case Different:
		return "different"
	}
	return fmt.Sprintf("Change(%d)", int(c))
}

// Compare reports how b, a later identity of a file, differs from a.
func Compare(a, b chunk.Identity) Change {
	switch {
	case a == b:
		return Same
	case a.Size == b.Size && a.ModTimeNS == b.ModTimeNS && a.Inode == b.Inode:
		return ChangeTimeOnly
	}
	return Different
}

// identify returns the identity of a file with the metadata info. Only Windows needs f.
func identify(f *os.File, info fs.FileInfo) (chunk.Identity, error) {
	id, err := regular.Identify(f, info)
	if err != nil {
		return chunk.Identity{}, fmt.Errorf("identity: %w: %w", chunk.ErrRead, err)
	}
	return chunk.Identity(id), nil
}

// identifyOpen returns the identity of the open file f.
func identifyOpen(f *os.File) (chunk.Identity, error) {
	info, err := f.Stat()
	if err != nil {
		return chunk.Identity{}, fmt.Errorf("identity: %w: %w", chunk.ErrRead, err)
	}
	return identify(f, info)
}

// StatIdentity returns the identity of the file at path. Unlike
// [File.Identity], it opens the file only on Windows.
func StatIdentity(path string) (chunk.Identity, error) {
	return statIdentity(func() (fs.FileInfo, error) { return os.Stat(path) }, func() (*os.File, error) { return os.Open(path) })
}

// StatIdentityIn is like [StatIdentity] for the file name in dir. It follows no symbolic link.
func StatIdentityIn(dir *os.Root, name string) (chunk.Identity, error) {
	return statIdentity(func() (fs.FileInfo, error) { return dir.Lstat(name) }, func() (*os.File, error) { return nolink.Open(dir, name) })
}

func statIdentity(stat func() (fs.FileInfo, error), open func() (*os.File, error)) (chunk.Identity, error) {
	if runtime.GOOS != "windows" {
		info, err := stat()
		if err != nil {
			return chunk.Identity{}, fmt.Errorf("identity: %w: %w", chunk.ErrRead, err)
		}
		return identify(nil, info)
	}
	f, err := open()
	if err != nil {
		return chunk.Identity{}, fmt.Errorf("identity: %w: %w", chunk.ErrRead, err)
	}
	defer f.Close()
	return identifyOpen(f)
}
