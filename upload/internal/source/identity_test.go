package source

import (
	"compress/flate"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload/internal/stream"
)

var past = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)

// write writes a file whose modification time is in the past.
func write(t *testing.T, data []byte) (path string) {
	t.Helper()
	path = filepath.Join(testsize.DiskDir(t), "f")
	require.NoError(t, errors.Join(os.WriteFile(path, data, 0o600), os.Chtimes(path, past, past)))
	return path
}

// openFile opens a file, and settles it unless it will be changed before its first byte is read.
func openFile(t *testing.T, path string, settle bool) *File {
	t.Helper()
	src, err := sourcefile.Open(path)
	require.NoError(t, err)
	file, err := NewFile(src, path, silent)
	if err == nil && settle {
		err = file.Settle(t.Context(), func() {})
	}
	require.NoError(t, err)
	t.Cleanup(file.Close)
	return file
}

// edits are what another process may do to a file.
var edits = map[string]func(path string) error{
	"nothing": func(string) error { return nil },
	"chmod":   func(path string) error { return os.Chmod(path, 0o640) },
	"edit and restore the time": func(path string) error {
		return errors.Join(edit(path), os.Chtimes(path, past, past))
	},
	"edit":    edit,
	"append":  func(path string) error { return os.Truncate(path, 9*q) },
	"shorten": func(path string) error { return os.Truncate(path, q) },
	"replace": func(path string) error {
		return errors.Join(os.WriteFile(path+".new", random(3*q+1000), 0o600), os.Rename(path+".new", path))
	},
}

func edit(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt([]byte("edited"), 5)
		err = errors.Join(err, f.Close())
	}
	return err
}

// TestChangesWhileSending checks which changes of a file end its upload before the last body, also a compressed one: all but
// those of its attributes. The bytes are compared if only the change time differs.
func TestChangesWhileSending(t *testing.T) {
	t.Parallel()
	for name, edit := range edits {
		want := error(nil)
		if name != "nothing" && name != "chmod" {
			want = session.ErrSourceChanged
		}
		path := write(t, random(3*q+1000))
		file := openFile(t, path, true)
		zipped := NewGzip(openFile(t, path, true), Compressor{flate.HuffmanOnly}, &stream.Memory{}, 4*q)
		t.Cleanup(zipped.Close)
		b, err := file.Next(t.Context(), 0, 3*q)
		z, zerr := zipped.Next(t.Context(), 0, q)
		if err = errors.Join(err, zerr); err == nil {
			_, err = io.Copy(io.Discard, io.MultiReader(b, z))
		}
		if err = errors.Join(err, b.Finish(), z.Finish(), edit(path)); err != nil {
			t.Fatal(err)
		}
		if z, err := zipped.Next(t.Context(), q, 4*q); !errors.Is(err, want) || err == nil && !z.Last {
			t.Errorf("%s: the last compressed body: %v, %v, want %v", name, z.Last, err, want)
		}
		if err := file.Changed(t.Context(), 3*q); !errors.Is(err, want) {
			t.Errorf("%s: Changed: %v, want %v", name, err, want)
		}
		b, err = file.Next(t.Context(), 3*q, 3*q)
		if !errors.Is(err, want) || err == nil && (!b.Last || b.CRC32C != checksum.Update(0, random(3*q+1000))) {
			t.Errorf("%s: the last body: %v, %v, want %v", name, b.Last, err, want)
		}
		if now, err := sourcefile.StatIdentity(path); want == nil && (err != nil || file.Identity() != now) {
			t.Errorf("%s: the identity is %+v, want %+v, %v", name, file.Identity(), now, err)
		}
	}
}

// TestSince checks what the identity of an earlier process shows about a file, and when its bytes must be compared.
func TestSince(t *testing.T) {
	now := chunk.Identity{Size: 8, ModTimeNS: 1, ChangeTimeNS: 2, Device: 3, Inode: 4}
	with := func(f func(*chunk.Identity)) chunk.Identity {
		was := now
		f(&was)
		return was
	}
	device := with(func(i *chunk.Identity) { i.Device++ })
	edited := with(func(i *chunk.Identity) { i.ModTimeNS++ })
	for _, tt := range []struct {
		name                       string
		was                        chunk.Identity
		shared, imported, unsynced bool
		want                       sourcefile.Change
		copied                     bool
	}{
		{"same", now, false, false, false, sourcefile.Same, false},
		{"chmod", with(func(i *chunk.Identity) { i.ChangeTimeNS-- }), false, false, false, sourcefile.ChangeTimeOnly, false},
		{"racy then", with(func(i *chunk.Identity) { i.ChangeTimeNS = 0 }), false, false, false, sourcefile.ChangeTimeOnly, false},
		{"cannot be synced", now, false, false, true, sourcefile.ChangeTimeOnly, false},
		{"another device number", device, false, false, false, sourcefile.ChangeTimeOnly, false},
		{"same, of another machine", device, true, false, false, sourcefile.Same, false},
		{"edited", edited, false, false, false, sourcefile.Different, false},
		{"a copy on another machine", edited, true, false, false, sourcefile.ChangeTimeOnly, true},
		{"another size there", with(func(i *chunk.Identity) { i.Size++ }), true, false, false, sourcefile.Different, true},
		{"imported", chunk.Identity{Size: 8}, false, true, false, sourcefile.ChangeTimeOnly, true},
		{"imported, another size", chunk.Identity{Size: 9}, false, true, false, sourcefile.Different, true},
		{"imported, same times", now, false, true, false, sourcefile.ChangeTimeOnly, true},
	} {
		o := &original{identity: now, unsynced: tt.unsynced}
		if got := o.Since(tt.was, tt.shared, tt.imported); got != tt.want || o.Copied() != tt.copied {
			t.Errorf("%s: %v, copied %v, want %v, %v", tt.name, got, o.Copied(), tt.want, tt.copied)
		}
		if o.Proven(); o.Copied() {
			t.Errorf("%s: copied, although the bytes are proven", tt.name)
		}
	}
}

// TestCopyThatDiffers checks that a copy of the source is named as the reason if it cannot be compared otherwise.
func TestCopyThatDiffers(t *testing.T) {
	file := FromBytes(random(q), silent)
	file.Since(chunk.Identity{Size: q, ModTimeNS: 1}, false, true)
	err := file.Changed(t.Context(), 7)
	if _, copied := errors.AsType[*CopyDiffers](err); !copied || !errors.Is(err, session.ErrSourceChanged) {
		t.Errorf("%v, want CopyDiffers", err)
	}
	if file.Restart(); file.Copied() || file.Changed(t.Context(), 7) != nil {
		t.Error("a new session has no bytes that could differ")
	}
}

// growing is a file that another process appends to after each call of Stat.
type growing struct{ *os.File }

func (g growing) Stat() (fs.FileInfo, error) {
	info, err := g.File.Stat()
	if err == nil {
		_, err = g.WriteString("x")
	}
	return info, err
}

// TestFileThatGrows checks that a file which changes before its first byte is read is not sent, and that the identity
// of a racy file has no change time.
func TestFileThatGrows(t *testing.T) {
	path := write(t, random(100))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	src, err := sourcefile.FromFile(growing{f}, 0)
	if err == nil {
		_, err = NewFile(src, path, silent)
	}
	if !errors.Is(err, session.ErrSourceChanged) {
		t.Errorf("a file that grows while it is opened: %v", err)
	}
	file := openFile(t, path, false)
	require.NoError(t, os.Truncate(path, 200))
	if err := file.Settle(t.Context(), func() {}); !errors.Is(err, session.ErrSourceChanged) {
		t.Errorf("a file that grew after it was opened: %v", err)
	}
	for _, racy := range []bool{false, true} {
		if racy {
			require.NoError(t, os.Chtimes(path, past, time.Now().Add(time.Hour)))
		}
		settled, unsettled := openFile(t, path, true), openFile(t, path, false)
		unsettled.noteRacy()
		for _, file := range []*File{settled, unsettled} {
			if got := file.Identity(); (got.ChangeTimeNS == 0) != racy || got.Size != 200 || file.settled != (file == settled) || file.Info().Name() != "f" {
				t.Errorf("racy %v: %+v, settled %v", racy, got, file.settled)
			}
		}
		if err := settled.Settle(t.Context(), nil); err != nil { // once is enough
			t.Error(err)
		}
	}
}

// TestRemove checks which files are removed, and for which the bytes are compared before.
func TestRemove(t *testing.T) {
	missing := errors.New("the object does not exist")
	adopt := func(f *File) { f.Adopt(Saved{}) }
	for _, tt := range []struct {
		name       string
		settled    bool
		change     func(f *File) // what is known of the file
		edit       string
		same       bool // the bytes are those of the object
		unreadable error
		object     error
		dispose    bool
		compared   bool
		want       error
	}{
		{"unchanged", true, nil, "nothing", false, nil, nil, false, false, nil},
		{"unchanged, other end", true, nil, "nothing", false, nil, nil, true, false, nil},
		{"chmod", true, nil, "chmod", true, nil, nil, false, true, nil},
		{"edit", true, nil, "edit", true, nil, nil, false, false, session.ErrSourceChanged},
		{"quiet edit", true, nil, "edit and restore the time", false, nil, nil, false, true, session.ErrSourceChanged},
		{"not settled", false, nil, "nothing", true, nil, nil, false, true, nil},
		{"not settled, edited", false, nil, "edit", true, nil, nil, false, false, session.ErrSourceChanged},
		{"racy", true, func(f *File) { f.racy = true }, "nothing", true, nil, nil, false, true, nil},
		{"unsynced", true, func(f *File) { f.unsynced = true }, "nothing", true, nil, nil, false, true, nil},
		{"resumed", true, adopt, "nothing", true, nil, nil, false, true, nil},
		{"unreadable", true, adopt, "nothing", false, chunk.ErrRead, nil, false, true, chunk.ErrRead},
		{"no object", true, nil, "nothing", false, nil, missing, false, false, missing},
	} {
		path := write(t, random(100))
		file := openFile(t, path, tt.settled)
		if tt.change != nil {
			tt.change(file)
		}
		require.NoError(t, edits[tt.edit](path))
		compared, disposed := false, false
		var dispose func(*os.Root, string, fs.FileInfo, func() error) error
		if tt.dispose {
			dispose = func(*os.Root, string, fs.FileInfo, func() error) error { disposed = true; return nil }
		}
		err := file.Remove(t.Context(), func() (bool, error) { compared = true; return tt.same, tt.unreadable }, func() error { return tt.object }, dispose)
		_, gone := os.Lstat(path)
		if removed := errors.Is(gone, fs.ErrNotExist); !errors.Is(err, tt.want) || compared != tt.compared || removed != (tt.want == nil && !tt.dispose) || disposed != tt.dispose {
			t.Errorf("%s: %v, removed %v, compared %v, want %+v", tt.name, err, removed, compared, tt)
		}
	}
}
