package outbox

import (
	"io/fs"
	"time"

	"gcsup/internal/powerdisk"
)

// powerDisk is a disk that loses power.
type powerDisk struct{ *powerdisk.Disk }

func (d powerDisk) create(path string, _ fs.FileMode) (diskFile, error) { return d.Create(path) }

func (d powerDisk) rename(from, to string) error {
	if _, err := d.Lstat(to); err == nil {
		return fs.ErrExist
	}
	return d.Rename(from, to)
}

func (d powerDisk) remove(path string) error                     { return d.Remove(path) }
func (d powerDisk) mkdir(path string) error                      { return d.Mkdir(path) }
func (d powerDisk) sync(dir string) error                        { return d.Sync(dir) }
func (d powerDisk) setTime(path string, modTime time.Time) error { return d.SetTime(path, modTime) }
func (d powerDisk) lstat(path string) (fs.FileInfo, error)       { return d.Lstat(path) }
func (d powerDisk) same(a, b fs.FileInfo) bool                   { return powerdisk.Same(a, b) }

// images calls look with every possible content of the files after a power loss now.
func (d powerDisk) images(look func(image map[string][]byte)) {
	d.Images(func(after *powerdisk.Disk) { look(after.Files()) })
}
