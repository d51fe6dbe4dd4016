package state

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/session"
	"gcsup/session/internal/secret"
)

// powerDisk simulates a file system that loses power. It has only the
// guarantees of POSIX: the bytes of a file are durable after its Sync, and
// names after a sync of the directory. Any subset of the other changes may be
// durable after a power loss.
type powerDisk struct {
	durable map[string]*inode // durable names
	pending []nameOp          // name changes since the last sync
	names   map[string]*inode // names that running programs see
	files   []*inode

	ops    int
	failAt int    // number of the operation that fails; 0 for none
	after  func() // called after each operation
}

type inode struct {
	durable []byte
	pending []write
}

type write struct {
	at   int
	data []byte
}

type nameOp struct {
	from, to string // rename; create if only to is set; remove if only from is set
	file     *inode
}

var errIO = errors.New("input/output error")

// op counts an operation, performs it and calls after.
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

func (o nameOp) apply(names map[string]*inode) {
	if o.from != "" {
		delete(names, o.from)
	}
	if o.to != "" {
		names[o.to] = o.file
	}
}

func (d *powerDisk) create(name string) (diskFile, error) {
	f := &powerFile{disk: d, inode: &inode{}}
	return f, d.op(func() error {
		if d.names[name] != nil {
			return fs.ErrExist
		}
		d.files = append(d.files, f.inode)
		d.change(nameOp{to: name, file: f.inode})
		return nil
	})
}

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
	return d.op(func() error {
		if d.names[name] == nil {
			return fs.ErrNotExist
		}
		d.change(nameOp{from: name})
		return nil
	})
}

func (d *powerDisk) sync() error {
	return d.op(func() error {
		for _, o := range d.pending {
			o.apply(d.durable)
		}
		d.pending = nil
		return nil
	})
}

type powerFile struct {
	disk  *powerDisk
	inode *inode
	n     int
}

// Write writes the data in three pieces, each of which can be lost.
func (f *powerFile) Write(p []byte) (int, error) {
	third := (len(p) + 2) / 3
	for done := 0; done < len(p); {
		piece := bytes.Clone(p[done:min(done+third, len(p))])
		err := f.disk.op(func() error {
			f.inode.pending = append(f.inode.pending, write{f.n, piece})
			return nil
		})
		if err != nil {
			return done, err
		}
		f.n += len(piece)
		done += len(piece)
	}
	return len(p), nil
}

func (f *powerFile) Sync() error {
	return f.disk.op(func() error {
		f.inode.durable = f.inode.content(func(int) bool { return true })
		f.inode.pending = nil
		return nil
	})
}

func (f *powerFile) Close() error { return f.disk.op(func() error { return nil }) }

// content returns the content of the file if only the chosen unsynced writes
// are durable. Missing bytes before them are zeros.
func (i *inode) content(chosen func(int) bool) []byte {
	data := bytes.Clone(i.durable)
	for n, w := range i.pending {
		if !chosen(n) {
			continue
		}
		if end := w.at + len(w.data); end > len(data) {
			data = append(data, make([]byte, end-len(data))...)
		}
		copy(data[w.at:], w.data)
	}
	return data
}

// images calls look with every possible state of the disk after a power loss
// now: each subset of the unsynced changes.
func (d *powerDisk) images(look func(map[string][]byte)) {
	changes := len(d.pending)
	for _, f := range d.files {
		changes += len(f.pending)
	}
	for subset := range 1 << changes {
		next := 0
		chosen := func(int) bool {
			next++
			return subset>>(next-1)&1 == 1
		}
		names := map[string]*inode{}
		for name, f := range d.durable {
			names[name] = f
		}
		for n, o := range d.pending {
			if chosen(n) {
				o.apply(names)
			}
		}
		contents := map[*inode][]byte{}
		for _, f := range d.files {
			contents[f] = f.content(chosen)
		}
		image := map[string][]byte{}
		for name, f := range names {
			image[name] = contents[f]
		}
		look(image)
	}
}

// newPowerDisk returns a disk with the files of an image, all durable.
func newPowerDisk(image map[string][]byte) *powerDisk {
	d := &powerDisk{durable: map[string]*inode{}, names: map[string]*inode{}}
	for name, data := range image {
		f := &inode{durable: data}
		d.files = append(d.files, f)
		d.durable[name], d.names[name] = f, f
	}
	return d
}

func crashToken(t *testing.T, committed int64) []byte {
	t.Helper()
	data, err := Encode(&Token{
		ID: "id", Spec: session.Spec{Bucket: "bucket", Object: "object"}, SourcePath: "/source", Source: chunk.Identity{Size: 1 << 40},
		Session: Session{
			URI:       secret.NewURI(session.DefaultEndpoint + "/upload/storage/v1/b/bucket/o?upload_id=x"),
			Created:   time.Unix(1, 0),
			Committed: committed, HighWater: committed,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const crashName, crashTemp = "id" + tokenSuffix, "id" + tempSuffix

// TestPowerLoss simulates a power loss after every operation of a Save, with
// every subset of the unsynced changes. It checks that the disk has the old
// Token or the new one, and the new one after Save has returned. Then it checks
// the next Save on the remaining files in the same way.
func TestPowerLoss(t *testing.T) {
	older, newer, newest := crashToken(t, 1), crashToken(t, 2), crashToken(t, 3)
	images := 0
	// save runs a Save on an image, with a power loss after every operation.
	save := func(image map[string][]byte, data []byte, allowed [][]byte, look func(map[string][]byte)) {
		d := newPowerDisk(image)
		check := func(allowed [][]byte) {
			d.images(func(image map[string][]byte) {
				images++
				got, there := image[crashName]
				for _, want := range allowed { // nil means no file
					if there == (want != nil) && bytes.Equal(got, want) {
						look(image)
						return
					}
				}
				t.Errorf("after operation %d: %d bytes, want the old Token or the new one: %.40q", d.ops, len(got), got)
			})
		}
		d.after = func() { check(allowed) }
		if err := replace(d, crashTemp, crashName, data); err != nil {
			t.Errorf("Save: %v", err)
		}
		check([][]byte{data})
	}
	for name, image := range map[string]map[string][]byte{
		"nothing there":                        {},
		"an old Token":                         {crashName: older},
		"what a crash left":                    {crashName: older, crashTemp: newest[:100]},
		"what a crash left, and no Token":      {crashTemp: {}},
		"what a crash left, longer than it is": {crashName: older, crashTemp: append(bytes.Clone(newest), newest...)},
	} {
		before := images
		first := image[crashName]
		save(image, newer, [][]byte{first, newer}, func(image map[string][]byte) {
			save(image, newest, [][]byte{image[crashName], newest}, func(map[string][]byte) {})
		})
		t.Logf("%s: %d states of the disk after a power loss", name, images-before)
	}
}

// TestPowerDiskLosesWhatIsNotSynced checks that powerDisk can lose changes.
func TestPowerDiskLosesWhatIsNotSynced(t *testing.T) {
	older, newer := crashToken(t, 1), crashToken(t, 2)
	for name, careless := range map[string]func(d *powerDisk){
		"no sync of the file": func(d *powerDisk) {
			f, _ := d.create(crashTemp)
			_, _ = f.Write(newer)
			_ = d.Rename(crashTemp, crashName)
			_ = d.sync()
		},
		"no sync of the directory": func(d *powerDisk) {
			f, _ := d.create(crashTemp)
			_, _ = f.Write(newer)
			_ = f.Sync()
			_ = d.Rename(crashTemp, crashName)
		},
		"in place": func(d *powerDisk) {
			_ = d.Remove(crashName)
			f, _ := d.create(crashName)
			_, _ = f.Write(newer)
			_ = f.Sync()
		},
	} {
		d := newPowerDisk(map[string][]byte{crashName: older})
		careless(d)
		lost := 0
		d.images(func(image map[string][]byte) {
			if !bytes.Equal(image[crashName], newer) {
				lost++
			}
		})
		if lost == 0 {
			t.Errorf("%s: nothing is lost", name)
		}
	}
}

// TestPowerLossInDelete checks that the Token is complete or absent after a
// power loss in Delete, and absent after Delete has returned.
func TestPowerLossInDelete(t *testing.T) {
	older := crashToken(t, 1)
	d := newPowerDisk(map[string][]byte{crashName: older, crashTemp: older[:10]})
	d.after = func() {
		d.images(func(image map[string][]byte) {
			if data := image[crashName]; data != nil && !bytes.Equal(data, older) {
				t.Errorf("%.40q is left", data)
			}
		})
	}
	if err := remove(d, crashName, crashTemp); err != nil {
		t.Fatal(err)
	}
	d.images(func(image map[string][]byte) {
		if len(image) != 0 {
			t.Errorf("%v is left after the Delete", image)
		}
	})
}

// TestDiskErrors makes each operation of a Save and a Delete fail. It checks
// that the error is returned, the old Token stays, and no temporary file is
// left.
func TestDiskErrors(t *testing.T) {
	older, newer := crashToken(t, 1), crashToken(t, 2)
	image := map[string][]byte{crashName: older, crashTemp: older[:10]}
	count := func(do func(*powerDisk) error) int {
		d := newPowerDisk(image)
		if err := do(d); err != nil {
			t.Fatal(err)
		}
		return d.ops
	}
	save := func(d *powerDisk) error { return replace(d, crashTemp, crashName, newer) }
	for n := 1; n <= count(save); n++ {
		d := newPowerDisk(image)
		d.failAt = n
		if err := save(d); !errors.Is(err, errIO) {
			t.Errorf("Save with operation %d failing: %v", n, err)
		}
		got := d.names[crashName].content(func(int) bool { return true })
		if !bytes.Equal(got, older) && !bytes.Equal(got, newer) {
			t.Errorf("Save with operation %d failing leaves %.40q", n, got)
		}
		if n > 2 && d.names[crashTemp] != nil { // the first two look for an earlier one
			t.Errorf("Save with operation %d failing leaves its temporary file", n)
		}
	}
	del := func(d *powerDisk) error { return remove(d, crashName, crashTemp) }
	for n := 1; n <= count(del); n++ {
		d := newPowerDisk(image)
		d.failAt = n
		if err := del(d); !errors.Is(err, errIO) {
			t.Errorf("Delete with operation %d failing: %v", n, err)
		}
	}
}
