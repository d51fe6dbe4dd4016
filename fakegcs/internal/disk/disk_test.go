package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gcsup/fakegcs/internal/disk"
	"gcsup/internal/require"
)

type record struct {
	Text string `json:"text"`
}

func open(t *testing.T, path string) *disk.Dir {
	t.Helper()
	d, err := disk.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	require.NoError(t, errors.Join(errs...))
}

// The next server loads the records that are saved and not removed.
func TestRecords(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	must(t,
		d.SaveBucket("b", record{"bucket"}), d.SaveBucket("gone", record{"bucket"}), d.RemoveBucket("gone"),
		d.SaveObject("b", "x/../y", 1, record{"old"}), d.SaveObject("b", "x/../y", 2, record{"first"}), d.SaveObject("b", "x/../y", 2, record{"object"}),
		d.RemoveObject("b", "x/../y", 1), d.RemoveObject("b", "never", 1),
		d.SaveSession("s", record{"session"}), d.SaveSession("gone", record{}), d.RemoveSession("gone"),
		d.SaveMultipart("m", record{"multipart"}), d.SavePart("m", 7, record{"part"}), d.SaveMultipart("gone", record{}), d.RemoveMultipart("gone"),
		d.Close(),
	)
	d = open(t, path)
	list := func(got []string, err error) func(want ...string) {
		return func(want ...string) {
			t.Helper()
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("list = %q, %v, want %q", got, err, want)
			}
		}
	}
	list(d.Buckets())("b")
	list(d.Sessions())("s")
	list(d.Multiparts())("m")
	if parts, err := d.Parts("m"); err != nil || !slices.Equal(parts, []int{7}) {
		t.Errorf("Parts = %v, %v", parts, err)
	}
	objects, err := d.Objects("b")
	if err != nil || len(objects) != 1 {
		t.Fatalf("Objects = %v, %v, want one", objects, err)
	}
	for want, load := range map[string]func(v any) error{
		"bucket":    func(v any) error { return d.LoadBucket("b", v) },
		"object":    func(v any) error { return d.LoadObject("b", objects[0], v) },
		"session":   func(v any) error { return d.LoadSession("s", v) },
		"multipart": func(v any) error { return d.LoadMultipart("m", v) },
		"part":      func(v any) error { return d.LoadPart("m", 7, v) },
	} {
		var r record
		if err := load(&r); err != nil || r.Text != want {
			t.Errorf("load %s: %q, %v", want, r.Text, err)
		}
	}
	if err := d.LoadBucket("gone", &record{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("load a removed bucket: %v", err)
	}
}

// After a kill during a save, the next server deletes the temporary file. A bucket
// whose name looks like such a file stays.
func TestLeftovers(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	must(t, d.SaveBucket("data.tmp", record{}), os.WriteFile(filepath.Join(path, "buckets", "x.tmp"), []byte("{"), 0o600))
	if got, err := d.Buckets(); err != nil || !slices.Equal(got, []string{"data.tmp"}) {
		t.Errorf("Buckets = %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(path, "buckets", "x.tmp")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the leftover: %v", err)
	}
}

func TestForeignRecord(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	must(t, os.WriteFile(filepath.Join(path, "sessions", "s"), []byte("text"), 0o600))
	if err := d.LoadSession("s", &record{}); err == nil || !strings.Contains(err.Error(), "not a record of this program") {
		t.Errorf("load of text: %v", err)
	}
}

func TestInUse(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	if _, err := disk.Open(path); !errors.Is(err, disk.ErrInUse) {
		t.Errorf("the second Open: %v, want ErrInUse", err)
	}
	must(t, d.Close(), d.Close())
	open(t, path)
}

// The path of a session is its secret.
func TestSessionErrorsHavePathHidden(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	must(t, os.MkdirAll(filepath.Join(path, "sessions", "secret", "x"), 0o700))
	for name, err := range map[string]error{"save": d.SaveSession("secret", record{}), "remove": d.RemoveSession("secret")} {
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBlobs(t *testing.T) {
	d := open(t, t.TempDir())
	for _, id := range []string{"kept", "orphan"} {
		b := d.Blob(id, 0)
		_, err := b.Append([]byte("bytes"), false)
		must(t, err, b.Close())
	}
	must(t, d.Sweep(func(id string) bool { return id == "kept" }), d.TruncateBlob("kept", 3))
	for id, want := range map[string]int64{"kept": 3, "orphan": 0} {
		if n, err := d.BlobSize(id); n != want || err != nil {
			t.Errorf("BlobSize(%s) = %d, %v, want %d", id, n, err, want)
		}
	}
}

// A server in memory has a nil Dir.
func TestNil(t *testing.T) {
	var d *disk.Dir
	must(t, d.SaveBucket("b", 1), d.RemoveBucket("b"), d.SaveObject("b", "o", 1, 1), d.RemoveObject("b", "o", 1), d.SaveSession("s", 1),
		d.RemoveSession("s"), d.SaveMultipart("m", 1), d.SavePart("m", 1, 1), d.RemoveMultipart("m"), d.Close())
}
