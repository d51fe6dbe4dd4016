package outbox

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// powerDisk simulates a file system that loses power, with directories. It has only the guarantees of POSIX,
// and that a rename is atomic: the bytes of a file are durable after its Sync, and a name after a sync of
// its directory; for a rename, that of the new name. Any subset of the other changes may be durable
// after a power loss. The model is that of package state.
type powerDisk struct {
	durable map[string]*inode // durable names
	pending []nameOp          // name changes that are not synced
	names   map[string]*inode // names that running programs see

	ops    int
	failAt int    // number of the operation that fails; 0 for none
	after  func() // called after each operation
}

// inode is a file or a directory.
type inode struct {
	dir     bool
	modTime time.Time
	durable []byte
	pending [][]byte // pieces that were written and not synced
}

func (i *inode) content() []byte {
	return append(bytes.Clone(i.durable), slices.Concat(i.pending...)...)
}

type nameOp struct {
	from, to string // rename; create if only to is set; remove if only from is set
	file     *inode
}

// dir returns the directory whose sync makes the change durable.
func (o nameOp) dir() string {
	if o.to != "" {
		return filepath.Dir(o.to)
	}
	return filepath.Dir(o.from)
}

// apply applies a change, if the earlier changes on which it depends were.
func (o nameOp) apply(names map[string]*inode) {
	if o.from != "" {
		if names[o.from] != o.file {
			return
		}
		delete(names, o.from)
	}
	if o.to != "" {
		names[o.to] = o.file
	}
}

var errIO = errors.New("input/output error")

// newPowerDisk returns a disk with durable files.
func newPowerDisk(files map[string][]byte) *powerDisk {
	d := &powerDisk{durable: map[string]*inode{}, names: map[string]*inode{}}
	for path, data := range files {
		f := &inode{durable: data, dir: data == nil}
		d.durable[path], d.names[path] = f, f
	}
	return d
}

func (d *powerDisk) op(do func() error) error {
	d.ops++
	if d.ops == d.failAt {
		return errIO
	}
	err := do()
	if d.after != nil {
		d.after()
	}
	return err
}

func (d *powerDisk) change(o nameOp) {
	o.apply(d.names)
	d.pending = append(d.pending, o)
}

func (d *powerDisk) create(path string, _ fs.FileMode) (diskFile, error) {
	f := &powerFile{d, &inode{}}
	return f, d.op(func() error {
		if d.names[path] != nil {
			return fs.ErrExist
		}
		d.change(nameOp{to: path, file: f.inode})
		return nil
	})
}

func (d *powerDisk) rename(from, to string) error {
	if d.names[to] != nil {
		return fs.ErrExist
	}
	return d.replace(from, to)
}

func (d *powerDisk) replace(from, to string) error {
	return d.op(func() error {
		if d.names[from] == nil || d.names[filepath.Dir(to)] == nil {
			return fs.ErrNotExist
		}
		d.change(nameOp{from, to, d.names[from]})
		return nil
	})
}

func (d *powerDisk) remove(path string) error {
	return d.op(func() error {
		if d.names[path] == nil {
			return fs.ErrNotExist
		}
		d.change(nameOp{from: path, file: d.names[path]})
		return nil
	})
}

func (d *powerDisk) mkdir(path string) error {
	return d.op(func() error {
		if d.names[path] != nil {
			return fs.ErrExist
		}
		d.change(nameOp{to: path, file: &inode{dir: true}})
		return nil
	})
}

func (d *powerDisk) sync(dir string) error {
	return d.op(func() error {
		var left []nameOp
		for _, o := range d.pending {
			if o.dir() == dir {
				o.apply(d.durable)
			} else {
				left = append(left, o)
			}
		}
		d.pending = left
		return nil
	})
}

func (d *powerDisk) setTime(path string, modTime time.Time) error {
	if d.names[path] == nil {
		return fs.ErrNotExist
	}
	d.names[path].modTime = modTime
	return nil
}

func (d *powerDisk) lstat(path string) (fs.FileInfo, error) {
	if f := d.names[path]; f != nil {
		return powerInfo{f}, nil
	}
	return nil, fs.ErrNotExist
}

func (d *powerDisk) same(a, b fs.FileInfo) bool { return a.(powerInfo).inode == b.(powerInfo).inode }

type powerInfo struct{ *inode }

func (i powerInfo) Name() string       { return "" }
func (i powerInfo) Size() int64        { return int64(len(i.content())) }
func (i powerInfo) ModTime() time.Time { return i.modTime }
func (i powerInfo) IsDir() bool        { return i.dir }
func (i powerInfo) Sys() any           { return nil }
func (i powerInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o700
	}
	return 0o600
}

type powerFile struct {
	disk  *powerDisk
	inode *inode
}

// Write writes the data in two pieces, each of which can be lost.
func (f *powerFile) Write(p []byte) (int, error) {
	for _, piece := range [][]byte{p[:len(p)/2], p[len(p)/2:]} {
		if err := f.disk.op(func() error { f.inode.pending = append(f.inode.pending, bytes.Clone(piece)); return nil }); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (f *powerFile) Sync() error {
	return f.disk.op(func() error {
		f.inode.durable, f.inode.pending = f.inode.content(), nil
		return nil
	})
}

func (f *powerFile) Close() error { return f.disk.op(func() error { return nil }) }

// images calls look with every possible state of the files after a power loss now: each subset of the
// changes that are not synced. A file whose directory is lost is lost too.
func (d *powerDisk) images(look func(image map[string][]byte)) {
	var files []*inode
	for _, f := range d.names {
		if len(f.pending) > 0 {
			files = append(files, f)
		}
	}
	changes := len(d.pending)
	for _, f := range files {
		changes += len(f.pending)
	}
	for subset := range 1 << changes {
		next := 0
		chosen := func() bool {
			next++
			return subset>>(next-1)&1 == 1
		}
		names := map[string]*inode{}
		for path, f := range d.durable {
			names[path] = f
		}
		for _, o := range d.pending {
			if chosen() {
				o.apply(names)
			}
		}
		contents := map[*inode][]byte{}
		for _, f := range files {
			data := bytes.Clone(f.durable)
			for _, piece := range f.pending {
				if chosen() {
					data = append(data, piece...)
				} else {
					data = append(data, make([]byte, len(piece))...)
				}
			}
			contents[f] = data
		}
		image := map[string][]byte{}
		for path, f := range names {
			if f.dir || !reachable(names, path) {
				continue
			}
			if image[path] = contents[f]; contents[f] == nil {
				image[path] = f.durable
			}
		}
		look(image)
	}
}

// reachable reports whether the directories above a path exist.
func reachable(names map[string]*inode, path string) bool {
	for dir := filepath.Dir(path); strings.Count(dir, "/") > 1; dir = filepath.Dir(dir) {
		if names[dir] == nil || !names[dir].dir {
			return false
		}
	}
	return true
}
