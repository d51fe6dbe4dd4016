package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/internal/powerdisk"
	"gcsup/internal/require"
)

var (
	powerOld = []byte("the file that is there")
	powerNew = []byte("the content of the new file")
)

// box returns a disk with an outbox in /box, and further files. A nil content makes a directory.
func box(files map[string][]byte) powerDisk {
	all := map[string][]byte{"/box": nil, "/box/sub": nil, "/box/.outbox": nil, "/done": nil}
	maps.Copy(all, files)
	return powerDisk{powerdisk.New(all)}
}

// like is the metadata of a source.
func like() fs.FileInfo {
	d := powerdisk.New(map[string][]byte{"source": {}})
	_ = d.SetTime("source", time.Unix(1, 0))
	info, _ := d.Lstat("source")
	return info
}

// put puts a file.
func (d powerDisk) put(to string, content []byte) error {
	return putCopy(d, "/box", to, bytes.NewReader(content), like(), unchanged)
}

// dispose removes the file sub/f, or moves it to a directory.
func (d powerDisk) dispose(to string) error {
	was, _ := d.lstat("/box/sub/f")
	return (&disposer{disk: d, dir: "/box", to: to, sync: d.sync}).dispose(nil, "/box/sub/f", was, unchanged)
}

// giveUp moves the file sub/f to .failed.
func (d powerDisk) giveUp() error {
	failure := Failure{Name: "sub/f", Kind: "invalid", Time: time.Unix(1, 0)}
	return (&disposer{disk: d, dir: "/box", sync: d.sync}).setAside("/box/sub/f", failure)
}

// TestPutPowerLoss simulates a power loss after each operation of a put. The new file is complete or absent, and it
// is there when put has returned.
func TestPutPowerLoss(t *testing.T) {
	for _, to := range []string{"/box/new", "/box/sub/new", "/box/a/b/new"} {
		d := box(map[string][]byte{"/box/old": powerOld})
		images := 0
		check := func(must bool) {
			d.images(func(image map[string][]byte) {
				images++
				got, there := image[to]
				if there && !bytes.Equal(got, powerNew) || must && !there {
					t.Errorf("%s after operation %d: %q", to, d.Ops(), got)
				}
				if !bytes.Equal(image["/box/old"], powerOld) {
					t.Error("another file is damaged")
				}
			})
		}
		d.After = func() { check(false) }
		require.NoError(t, d.put(to, powerNew))
		check(true)
		t.Logf("%s: %d states of the disk", to, images)
	}
}

// TestPowerDiskLosesWhatIsNotSynced checks that the model can lose a file.
func TestPowerDiskLosesWhatIsNotSynced(t *testing.T) {
	for _, tt := range []struct {
		dir             string
		syncFile, syncs bool
	}{{"/box", false, true}, {"/box", true, false}, {"/box/a", true, true}} { // not synced: the file, the directory, its parent
		d, lost := box(nil), 0
		_ = d.mkdir(tt.dir)
		f, _ := d.create(tt.dir+"/.temp", 0)
		_, _ = f.Write(powerNew)
		if tt.syncFile {
			_ = f.Sync()
		}
		_ = d.rename(tt.dir+"/.temp", tt.dir+"/new")
		if tt.syncs {
			_ = d.sync(tt.dir)
		}
		d.images(func(image map[string][]byte) {
			if !bytes.Equal(image[tt.dir+"/new"], powerNew) {
				lost++
			}
		})
		if lost == 0 {
			t.Errorf("%+v: nothing is lost", tt)
		}
	}
}

// places are where the file sub/f can be.
var places = []string{"/box/sub/f", "/box/.outbox/removing/sub/f", "/done/sub/f", "/box/.failed/sub/f"}

// TestDisposePowerLoss simulates a power loss after each operation that removes, moves or gives up a file. Before
// it has returned, the file is in one of its places, or it was removed after its object was verified. Afterwards it
// does not come back.
func TestDisposePowerLoss(t *testing.T) {
	for name, tt := range map[string]struct {
		do     func(d powerDisk) error
		stays  bool   // the file must exist in every state
		ending string // the only place afterwards; "" if there is none
	}{
		"remove":  {do: func(d powerDisk) error { return d.dispose("") }},
		"move":    {stays: true, ending: "/done/sub/f", do: func(d powerDisk) error { return d.dispose("/done") }},
		"give up": {stays: true, ending: "/box/.failed/sub/f", do: powerDisk.giveUp},
		"restore": {stays: true, ending: "/box/sub/f", do: func(d powerDisk) error {
			if err := d.Rename("/box/sub/f", "/box/.outbox/f"); err != nil {
				return err
			}
			return (&disposer{disk: d, dir: "/box", sync: d.sync}).restore("/box/.outbox/f", "/box/sub/f")
		}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			d := box(map[string][]byte{"/box/sub/f": powerOld})
			found := func(image map[string][]byte) (at []string) {
				for _, place := range append(places, "/box/.outbox/f") {
					if data, there := image[place]; there {
						if at = append(at, place); !bytes.Equal(data, powerOld) {
							t.Errorf("%s has %q", place, data)
						}
					}
				}
				return at
			}
			d.After = func() {
				d.images(func(image map[string][]byte) {
					if at := found(image); len(at) > 1 || tt.stays && len(at) == 0 {
						t.Errorf("after operation %d it is at %q", d.Ops(), at)
					}
					if reason := image["/box/.failed/sub/f.reason.json"]; !json.Valid(reason) && image["/box/.failed/sub/f"] != nil {
						t.Errorf("after operation %d the reason is %q", d.Ops(), reason)
					}
				})
			}
			require.NoError(t, tt.do(d))
			if name == "restore" {
				return // the next scan finds it, or the next process restores it
			}
			d.images(func(image map[string][]byte) {
				if at := strings.Join(found(image), " "); at != tt.ending {
					t.Errorf("afterwards it is at %q, want %q", at, tt.ending)
				}
			})
		})
	}
}

// TestDirectoriesOfAnotherProcess checks that directories which another process made, without their sync, are
// durable with the file in them.
func TestDirectoriesOfAnotherProcess(t *testing.T) {
	for name, tt := range map[string]struct {
		dirs []string
		do   func(d powerDisk) error
		want string
	}{
		"put":     {[]string{"/box/a", "/box/a/b"}, func(d powerDisk) error { return d.put("/box/a/b/f", powerOld) }, "/box/a/b/f"},
		"move":    {[]string{"/done/sub"}, func(d powerDisk) error { return d.dispose("/done") }, "/done/sub/f"},
		"give up": {[]string{"/box/.failed", "/box/.failed/sub"}, powerDisk.giveUp, "/box/.failed/sub/f"},
		"restore": {[]string{"/box/.outbox/removing", "/box/.outbox/removing/sub"}, func(d powerDisk) error {
			was, _ := d.lstat("/box/other") // another file has replaced it
			if err := (&disposer{disk: d, dir: "/box", sync: d.sync}).dispose(nil, "/box/sub/f", was, unchanged); !errors.Is(err, errAltered) {
				return err
			}
			return nil
		}, "/box/sub/f"},
	} {
		d := box(map[string][]byte{"/box/sub/f": powerOld, "/box/other": powerNew})
		for _, dir := range tt.dirs {
			_ = d.mkdir(dir)
		}
		d.After = func() {
			d.images(func(image map[string][]byte) {
				if name == "restore" && !bytes.Equal(image["/box/sub/f"], powerOld) && !bytes.Equal(image["/box/.outbox/removing/sub/f"], powerOld) {
					t.Errorf("%s: after operation %d the file is lost", name, d.Ops())
				}
			})
		}
		if err := tt.do(d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "restore" {
			continue // the next process finds it
		}
		d.images(func(image map[string][]byte) {
			if !bytes.Equal(image[tt.want], powerOld) {
				t.Errorf("%s: %s is lost", name, tt.want)
			}
		})
	}
}

// TestDiskErrors makes each operation fail. The error is returned, no file is lost, and a put leaves nothing
// behind.
func TestDiskErrors(t *testing.T) {
	for name, do := range map[string]func(d powerDisk) error{
		"put":     func(d powerDisk) error { return d.put("/box/a/new", powerNew) },
		"remove":  func(d powerDisk) error { return d.dispose("") },
		"move":    func(d powerDisk) error { return d.dispose("/done") },
		"give up": powerDisk.giveUp,
	} {
		whole := box(map[string][]byte{"/box/sub/f": powerOld})
		require.NoError(t, do(whole))
		for n := 1; n <= whole.Ops(); n++ {
			d := box(map[string][]byte{"/box/sub/f": powerOld})
			d.FailAt = n
			if err := do(d); !errors.Is(err, powerdisk.ErrIO) {
				t.Errorf("%s: operation %d of %d fails: %v", name, n, whole.Ops(), err)
			}
			there := 0
			for _, place := range places {
				if bytes.Equal(d.Files()[place], powerOld) {
					there++
				}
			}
			if removed := name == "remove" && n >= whole.Ops()-1; there != 1 && !removed { // only a sync failed
				t.Errorf("%s: operation %d of %d fails: the file has %d names", name, n, whole.Ops(), there)
			}
			for _, path := range d.Names() {
				if temporary(filepath.Base(path)) {
					t.Errorf("%s: operation %d of %d fails: %s is left", name, n, whole.Ops(), path)
				}
			}
		}
	}
}

// swapDisk replaces a file before it is renamed.
type swapDisk struct {
	osDisk
	swap func(from string)
}

func (d swapDisk) rename(from, to string) error {
	d.swap(from)
	return d.osDisk.rename(from, to)
}

// TestReplacedWhileRemoved checks that a file that replaces another one between its last comparison and its removal
// is not removed.
func TestReplacedWhileRemoved(t *testing.T) {
	for _, again := range []bool{false, true} { // a third file gets the name before the second gets it back
		dir := t.TempDir()
		path := filepath.Join(dir, "sub", "f")
		was := written(t, path, "first")
		write := func(content string) {
			written(t, path+".new", content)
			require.NoError(t, os.Rename(path+".new", path))
		}
		renames := 0
		d := swapDisk{swap: func(from string) {
			if renames++; renames == 1 {
				write("second")
			} else if renames == 2 && again {
				write("third")
			}
		}}
		box := disposer{disk: d, dir: dir, sync: osDisk{}.sync}
		if err := box.dispose(nil, path, was, unchanged); !errors.Is(err, errAltered) {
			t.Errorf("dispose = %v", err)
		}
		want := map[string]string{"sub/f": "second"}
		if again {
			want = map[string]string{"sub/f": "third", ".failed/sub/f": "second"}
		}
		for name, content := range want {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != content {
				t.Errorf("%s has %q, %v, want %q", name, got, err, content)
			}
		}
		if now, err := os.Lstat(path); err == nil {
			renames = 9
			require.NoError(t, box.dispose(nil, path, now, unchanged))
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file is left: %v", err)
		}
	}
}

// unchanged is the comparison of a file that has not changed.
func unchanged() error { return nil }

// mountDisk is a disk on which each rename to another directory fails: a file system is mounted in the directory.
type mountDisk struct {
	osDisk
	before func()
}

func (d mountDisk) rename(from, to string) error {
	if filepath.Dir(from) == filepath.Dir(to) {
		return d.osDisk.rename(from, to)
	}
	d.before()
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: syscall.EXDEV}
}

// TestReplacedOnOtherFileSystem checks that a file which replaces another one is not removed either if it cannot
// be renamed first.
func TestReplacedOnOtherFileSystem(t *testing.T) {
	for _, replaced := range []bool{true, false} {
		dir := t.TempDir()
		path := filepath.Join(dir, "f")
		was := written(t, path, "old")
		d := mountDisk{before: func() {
			if replaced {
				written(t, path+".new", "new")
				_ = os.Rename(path+".new", path)
			}
		}}
		err := (&disposer{disk: d, dir: dir, sync: osDisk{}.sync}).dispose(nil, path, was, unchanged)
		if _, gone := os.Lstat(path); errors.Is(err, errAltered) != replaced || (gone == nil) != replaced {
			t.Errorf("replaced %v: %v; it is there: %v", replaced, err, gone)
		}
	}
}

// TestOpenedWhileRemoved checks that a file that a program opens for writing after it got a private name gets its name
// back, and that it replaces no new file of that name.
func TestOpenedWhileRemoved(t *testing.T) {
	for _, to := range []string{"", "done"} {
		for _, again := range []bool{false, true} {
			for _, mounted := range []bool{false, true} {
				base := t.TempDir()
				dir := filepath.Join(base, "box")
				path := filepath.Join(dir, "sub", "f")
				was := written(t, path, string(powerOld))
				box := disposer{disk: boxDisk(base), dir: dir, sync: osDisk{}.sync}
				if to != "" {
					box.to = filepath.Join(base, to)
					require.NoError(t, os.Mkdir(box.to, 0o700))
				} else if mounted {
					box.disk = mountDisk{before: func() {}}
				}
				err := box.dispose(nil, path, was, func() error {
					if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("the file still has its name: %v", err)
					}
					if again {
						require.NoError(t, os.WriteFile(path, powerNew, 0o600))
					}
					return syscall.ETXTBSY
				})
				if !errors.Is(err, syscall.ETXTBSY) {
					t.Errorf("dispose = %v", err)
				}
				at := path
				if again {
					at = filepath.Join(dir, ".failed", "sub", "f")
					if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, powerNew) {
						t.Errorf("the new file has %q, %v", got, err)
					}
				}
				if mounted && again && to == "" {
					continue // .failed is on another file system: it keeps the private name, see TestGivesNamesBack
				}
				if got, err := os.ReadFile(at); err != nil || !bytes.Equal(got, powerOld) {
					t.Errorf("to %q, again %v, mounted %v: %s has %q, %v", to, again, mounted, at, got, err)
				}
			}
		}
	}
}
