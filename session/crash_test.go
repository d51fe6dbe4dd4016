package session

import (
	"bytes"
	"errors"
	"io/fs"
	"testing"
	"time"

	"gcsup/chunk"
)

// powerDisk keeps what was written and what is durable apart, as a file system
// does. It promises no more than POSIX: a file's bytes are durable after its
// Sync, names are after a sync of the directory, and of the rest any part may
// be, in any combination, when the power goes.
type powerDisk struct {
	durable map[string]*inode // names
	pending []nameOp          // changes of names since the last sync
	names   map[string]*inode // as running programs see them
	files   []*inode

	ops    int
	failAt int    // the operation that fails, if not 0
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
	from, to string // rename; to alone: create; from alone: remove
	file     *inode
}

var errIO = errors.New("input/output error")

// op counts an operation, does it, and lets the test look.
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

// Write takes the data in three pieces, each of which can be lost.
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

// content is what is in the file if the chosen ones of its unsynced writes got
// to the disk. What is missing before them is zeros.
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

// images calls look with every state in which the disk may be after a loss of
// power now: each subset of the changes that are not synced.
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

// newPowerDisk has the files of an image, all durable.
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
		ID: "id", Spec: Spec{Bucket: "bucket", Object: "object"}, Created: time.Unix(1, 0), SourcePath: "/source",
		URI:    newURI(DefaultEndpoint + "/upload/storage/v1/b/bucket/o?upload_id=x"),
		Source: chunk.Identity{Size: 1 << 40}, Committed: committed, HighWater: committed,
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const crashName, crashTemp = "id" + tokenSuffix, "id" + tempSuffix

// TestPowerLoss takes the power away after every operation of a Save, with
// every subset of what is not synced lost: there is the old Token or the new
// one, never a third, and a Save that returned is there. Then the next Save
// goes over what is left, and does the same.
func TestPowerLoss(t *testing.T) {
	older, newer, newest := crashToken(t, 1), crashToken(t, 2), crashToken(t, 3)
	images := 0
	// save runs a Save on an image, and crashes it everywhere.
	save := func(image map[string][]byte, data []byte, allowed [][]byte, look func(map[string][]byte)) {
		d := newPowerDisk(image)
		check := func(allowed [][]byte) {
			d.images(func(image map[string][]byte) {
				images++
				got, there := image[crashName]
				for _, want := range allowed { // nil: no file
					if there == (want != nil) && bytes.Equal(got, want) {
						look(image)
						return
					}
				}
				t.Errorf("after operation %d: %d bytes that are neither the old Token nor the new one: %.40q", d.ops, len(got), got)
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
		t.Logf("%s: %d states of the disk after a loss of power", name, images-before)
	}
}

// The disk of the test must be able to lose something.
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

// TestPowerLossInDelete: the Token is there or not, and after a Delete that
// returned it is not.
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

// TestDiskErrors lets each operation of a Save and a Delete fail: the error is
// reported, the old Token stays, and no temporary file does.
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
		if n > 1 && d.names[crashTemp] != nil {
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
