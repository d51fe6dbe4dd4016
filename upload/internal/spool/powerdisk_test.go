package spool

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
)

// powerDisk simulates a directory on a disk that loses power, as the one of package state. The
// bytes of a file are durable after its Sync, and names after a Sync of the directory. Any subset of the
// other changes may be durable after a power loss.
type powerDisk struct {
	durable map[string]*inode // durable names
	pending []nameOp          // name changes since the last Sync
	names   map[string]*inode // names that running programs see

	careless bool // Sync of a file does nothing
	forgets  bool // Sync of the directory does nothing

	space  int64 // free bytes; -1 if there is no limit
	ops    int
	failAt int    // number of the operation that fails; 0 for none
	after  func() // called after each operation
}

type inode struct {
	durable []byte
	now     []byte
	pending []write
}

type write struct {
	at   int64
	data []byte
}

type nameOp struct {
	from, to string // rename; create if only to is set; remove if only from is set
	file     *inode
}

var errIO = errors.New("input/output error")

func newPowerDisk() *powerDisk {
	return &powerDisk{durable: map[string]*inode{}, names: map[string]*inode{}, space: -1}
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

func (o nameOp) apply(names map[string]*inode) {
	if o.from != "" {
		delete(names, o.from)
	}
	if o.to != "" {
		names[o.to] = o.file
	}
}

func (d *powerDisk) change(o nameOp) {
	o.apply(d.names)
	d.pending = append(d.pending, o)
}

func (d *powerDisk) Create(name string) (file, error) {
	f := &powerFile{disk: d, inode: &inode{}}
	return f, d.op(func() error {
		if d.names[name] != nil {
			return fs.ErrExist
		}
		d.change(nameOp{to: name, file: f.inode})
		return nil
	})
}

func (d *powerDisk) Open(name string) (file, error) {
	i := d.names[name]
	if i == nil {
		return nil, fs.ErrNotExist
	}
	return &powerFile{disk: d, inode: i}, nil
}

func (d *powerDisk) Names() ([]string, error) { return slices.Sorted(maps.Keys(d.names)), nil }

func (d *powerDisk) Rename(from, to string) error {
	return d.op(func() error {
		if d.names[from] == nil {
			return fs.ErrNotExist
		}
		d.change(nameOp{from, to, d.names[from]})
		return nil
	})
}

func (d *powerDisk) Remove(name string) error {
	if d.names[name] == nil {
		return fs.ErrNotExist
	}
	return d.op(func() error {
		if d.space >= 0 {
			d.space += int64(len(d.names[name].now))
		}
		d.change(nameOp{from: name})
		return nil
	})
}

func (d *powerDisk) Sync() error {
	return d.op(func() error {
		if d.forgets {
			return nil
		}
		for _, o := range d.pending {
			o.apply(d.durable)
		}
		d.pending = nil
		return nil
	})
}

func (d *powerDisk) Close() error { return nil }

type powerFile struct {
	disk  *powerDisk
	inode *inode
}

// WriteAt writes the data in two pieces, each of which can be lost.
func (f *powerFile) WriteAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		piece := p[n:min(n+(len(p)+1)/2, len(p))]
		var full error
		if space := f.disk.space; space >= 0 && int64(len(piece)) > space {
			piece, full = piece[:space], syscall.ENOSPC
		}
		err := f.disk.op(func() error {
			w := write{at + int64(n), bytes.Clone(piece)}
			f.inode.pending = append(f.inode.pending, w)
			f.inode.now = w.apply(f.inode.now)
			if f.disk.space >= 0 {
				f.disk.space -= int64(len(piece))
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

func (w write) apply(data []byte) []byte {
	if end := w.at + int64(len(w.data)); end > int64(len(data)) {
		data = append(data, make([]byte, end-int64(len(data)))...)
	}
	copy(data[w.at:], w.data)
	return data
}

func (f *powerFile) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(len(f.inode.now)) {
		return 0, io.EOF
	}
	n := copy(p, f.inode.now[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *powerFile) Size() (int64, error) { return int64(len(f.inode.now)), nil }

func (f *powerFile) Sync() error {
	return f.disk.op(func() error {
		if !f.disk.careless {
			f.inode.durable, f.inode.pending = bytes.Clone(f.inode.now), nil
		}
		return nil
	})
}

func (f *powerFile) Close() error { return nil }

// maxImages bounds how many states of the disk are looked at after each operation. If there are
// more, they are chosen at random.
const maxImages = 32

// images calls look with states of the disk after a power loss now: subsets of the changes that are
// not durable, with none and all of them.
func (d *powerDisk) images(random *rand.Rand, look func(*powerDisk)) {
	changes := len(d.pending)
	files := map[*inode]bool{}
	for _, names := range []map[string]*inode{d.durable, d.names} {
		for _, f := range names {
			files[f] = true
		}
	}
	for _, o := range d.pending {
		if o.file != nil {
			files[o.file] = true
		}
	}
	for f := range files {
		changes += len(f.pending)
	}
	all := 1 << min(changes, 20)
	for n := range min(all, maxImages) {
		subset := uint64(n)
		if all > maxImages {
			subset = random.Uint64()
		}
		switch n {
		case 0:
			subset = 0
		case 1:
			subset = 1<<64 - 1
		}
		look(d.image(subset))
	}
}

// image returns the disk after a power loss at which a subset of the changes is durable.
func (d *powerDisk) image(subset uint64) *powerDisk {
	next := 0
	chosen := func() bool {
		next++
		return subset>>((next-1)%64)&1 == 1
	}
	names := maps.Clone(d.durable)
	for _, o := range d.pending {
		if chosen() {
			o.apply(names)
		}
	}
	after := newPowerDisk()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		f := names[name]
		data := bytes.Clone(f.durable)
		for _, w := range f.pending {
			if chosen() {
				data = w.apply(data)
			}
		}
		after.names[name] = &inode{durable: data, now: data}
		after.durable[name] = after.names[name]
	}
	return after
}
