// Package powerdisk simulates a disk that loses power, for tests.
package powerdisk

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrIO is the error of the operation FailAt.
var ErrIO = errors.New("input/output error")

// Disk is a file system in memory. It has only the guarantees of POSIX, and that a rename is atomic: the
// bytes of a file are durable after its Sync, and a name after a Sync of its directory; for a rename,
// that of the new name. Any subset of the other changes may be durable after a power loss.
type Disk struct {
	Space      int64  // free bytes; -1 if there is no limit
	LosesFiles bool   // Sync of a file does nothing
	LosesNames bool   // Sync of a directory does nothing
	FailAt     int    // number of the operation that fails; 0 for none
	After      func() // called after each operation

	mu      sync.Mutex // guards what follows, and Space, during an operation, a ReadAt and an Open
	ops     int
	durable map[string]*inode // durable names
	names   map[string]*inode // names that running programs see
	pending []change          // changes of names that are not synced
}

// inode is a file or a directory.
type inode struct {
	dir     bool
	modTime time.Time
	durable []byte
	now     []byte
	pending []write // that are not synced
}

type write struct {
	at   int64
	data []byte
}

// apply returns the data after the write. Missing bytes before it are zeros.
func (w write) apply(data []byte) []byte {
	if end := w.at + int64(len(w.data)); end > int64(len(data)) {
		data = append(data, make([]byte, end-int64(len(data)))...)
	}
	copy(data[w.at:], w.data)
	return data
}

// change is a change of names.
type change struct {
	from, to string // rename; create if only to is set; remove if only from is set
	file     *inode
}

// dir returns the directory whose Sync makes the change durable.
func (c change) dir() string {
	if c.to != "" {
		return filepath.Dir(c.to)
	}
	return filepath.Dir(c.from)
}

// apply applies a change, if the earlier changes on which it depends were.
func (c change) apply(names map[string]*inode) {
	if c.from != "" {
		if names[c.from] != c.file {
			return
		}
		delete(names, c.from)
	}
	if c.to != "" {
		names[c.to] = c.file
	}
}

// New returns a disk with durable files. A nil content makes a directory. The root, the directories in it,
// and the directory of names without a slash exist.
func New(files map[string][]byte) *Disk {
	d := &Disk{Space: -1, durable: map[string]*inode{}, names: map[string]*inode{}}
	for name, data := range files {
		f := &inode{durable: data, now: bytes.Clone(data), dir: data == nil}
		d.durable[name], d.names[name] = f, f
	}
	return d
}

// Ops returns the number of operations so far.
func (d *Disk) Ops() int { return d.ops }

// op counts an operation, performs it and calls After.
func (d *Disk) op(do func() error) error {
	err := d.locked(do)
	if err != ErrIO && d.After != nil {
		d.After()
	}
	return err
}

func (d *Disk) locked(do func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops++
	if d.ops == d.FailAt {
		return ErrIO
	}
	return do()
}

// find returns the file with a name, or nil.
func (d *Disk) find(name string) *inode {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.names[name]
}

func (d *Disk) change(c change) error {
	c.apply(d.names)
	d.pending = append(d.pending, c)
	return nil
}

// Create makes a file, which must not exist.
func (d *Disk) Create(name string) (*File, error) {
	f := &File{disk: d, inode: new(inode)}
	return f, d.op(func() error {
		if d.names[name] != nil {
			return fs.ErrExist
		}
		return d.change(change{to: name, file: f.inode})
	})
}

// Open opens a file. It is not an operation.
func (d *Disk) Open(name string) (*File, error) {
	f := d.find(name)
	if f == nil {
		return nil, fs.ErrNotExist
	}
	return &File{disk: d, inode: f}, nil
}

// Mkdir makes a directory.
func (d *Disk) Mkdir(name string) error {
	return d.op(func() error {
		if d.names[name] != nil {
			return fs.ErrExist
		}
		return d.change(change{to: name, file: &inode{dir: true}})
	})
}

// Rename renames a file. It replaces a file with the new name.
func (d *Disk) Rename(from, to string) error {
	return d.op(func() error {
		if dir := filepath.Dir(to); d.names[from] == nil || dir != "." && d.names[dir] == nil {
			return fs.ErrNotExist
		}
		return d.change(change{from, to, d.names[from]})
	})
}

// Remove removes a file. It is no operation if there is none.
func (d *Disk) Remove(name string) error {
	f := d.find(name)
	if f == nil {
		return fs.ErrNotExist
	}
	return d.op(func() error {
		if d.Space >= 0 {
			d.Space += int64(len(f.now))
		}
		return d.change(change{from: name, file: f})
	})
}

// Sync makes the names in a directory durable. That of names without a slash is ".".
func (d *Disk) Sync(dir string) error {
	return d.op(func() error {
		if d.LosesNames {
			return nil
		}
		d.pending = slices.DeleteFunc(d.pending, func(c change) bool {
			if c.dir() != dir {
				return false
			}
			c.apply(d.durable)
			return true
		})
		return nil
	})
}

// Names returns the names that running programs see.
func (d *Disk) Names() []string { return slices.Sorted(maps.Keys(d.names)) }

// Files returns the content of the files that running programs see. A file whose directory is lost is
// lost too.
func (d *Disk) Files() map[string][]byte {
	files := map[string][]byte{}
	for name, f := range d.names {
		if !f.dir && d.reachable(name) {
			files[name] = append([]byte{}, f.now...)
		}
	}
	return files
}

// reachable reports whether the directories above a name exist.
func (d *Disk) reachable(name string) bool {
	for dir := filepath.Dir(name); strings.Count(dir, "/") > 1; dir = filepath.Dir(dir) {
		if f := d.names[dir]; f == nil || !f.dir {
			return false
		}
	}
	return true
}

// Lstat describes a file.
func (d *Disk) Lstat(name string) (fs.FileInfo, error) {
	if f := d.names[name]; f != nil {
		return info{f}, nil
	}
	return nil, fs.ErrNotExist
}

// SetTime sets the modification time of a file.
func (d *Disk) SetTime(name string, modTime time.Time) error {
	f := d.names[name]
	if f == nil {
		return fs.ErrNotExist
	}
	f.modTime = modTime
	return nil
}

// Same reports whether two results of Lstat describe the same file.
func Same(a, b fs.FileInfo) bool { return a.(info).inode == b.(info).inode }

type info struct{ *inode }

func (i info) Name() string       { return "" }
func (i info) Size() int64        { return int64(len(i.now)) }
func (i info) ModTime() time.Time { return i.modTime }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o700
	}
	return 0o600
}

// File is an open file.
type File struct {
	disk  *Disk
	inode *inode
	at    int64 // of the next Write
}

// Write writes at the end of the last Write.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.WriteAt(p, f.at)
	f.at += int64(n)
	return n, err
}

// WriteAt writes the data in three pieces, each of which can be lost.
func (f *File) WriteAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		piece := p[n:min(n+(len(p)+2)/3, len(p))]
		var full error
		err := f.disk.op(func() error {
			if space := f.disk.Space; space >= 0 && int64(len(piece)) > space {
				piece, full = piece[:space], syscall.ENOSPC
			}
			w := write{at + int64(n), bytes.Clone(piece)}
			f.inode.pending = append(f.inode.pending, w)
			f.inode.now = w.apply(f.inode.now)
			if f.disk.Space >= 0 {
				f.disk.Space -= int64(len(piece))
			}
			return full
		})
		if err != nil && err != full {
			return n, err
		}
		if n += len(piece); full != nil {
			return n, full
		}
	}
	return n, nil
}

// ReadAt reads what was written.
func (f *File) ReadAt(p []byte, at int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return bytes.NewReader(f.inode.now).ReadAt(p, at)
}

// Size returns the size of the file.
func (f *File) Size() (int64, error) { return int64(len(f.inode.now)), nil }

// Sync makes the bytes of the file durable.
func (f *File) Sync() error {
	return f.disk.op(func() error {
		if !f.disk.LosesFiles {
			f.inode.durable, f.inode.pending = bytes.Clone(f.inode.now), nil
		}
		return nil
	})
}

// Close closes the file.
func (f *File) Close() error { return f.disk.op(func() error { return nil }) }

// Images calls look with every possible state of the disk after a power loss now: each subset of the
// changes that are not durable.
func (d *Disk) Images(look func(*Disk)) {
	for subset := range uint64(1) << d.changes() {
		look(d.image(subset))
	}
}

// SomeImages is like Images, but looks at no more than most states. If there are more, they are none of
// the changes, all of them, and random subsets.
func (d *Disk) SomeImages(most int, random *rand.Rand, look func(*Disk)) {
	if changes := d.changes(); changes < 20 && 1<<changes <= most {
		d.Images(look)
		return
	}
	look(d.image(0))
	look(d.image(1<<64 - 1))
	for range most - 2 {
		look(d.image(random.Uint64()))
	}
}

// changes returns how many changes are not durable.
func (d *Disk) changes() int {
	files := map[*inode]bool{}
	for _, names := range []map[string]*inode{d.durable, d.names} {
		for _, f := range names {
			files[f] = true
		}
	}
	for _, c := range d.pending {
		files[c.file] = true
	}
	n := len(d.pending)
	for f := range files {
		n += len(f.pending)
	}
	return n
}

// image returns the disk after a power loss at which a subset of the changes is durable.
func (d *Disk) image(subset uint64) *Disk {
	next := 0
	chosen := func() bool {
		next++
		return subset>>((next-1)%64)&1 == 1
	}
	names := maps.Clone(d.durable)
	for _, c := range d.pending {
		if chosen() {
			c.apply(names)
		}
	}
	after := New(nil)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := names[name]
		data := bytes.Clone(f.durable)
		for _, w := range f.pending {
			if chosen() {
				data = w.apply(data)
			}
		}
		after.names[name] = &inode{dir: f.dir, durable: data, now: bytes.Clone(data)}
		after.durable[name] = after.names[name]
	}
	return after
}
