package outbox_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/internal/sourcefile"
	"gcsup/upload/outbox"
)

// TestPut checks what Put does for each file that it finds.
func TestPut(t *testing.T) {
	dir, source := t.TempDir(), filepath.Join(t.TempDir(), "wal")
	content := random(300 << 10)
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, os.WriteFile(source, content, 0o640))
	require.NoError(t, os.Chtimes(source, old, old))
	require.NoError(t, os.Chmod(source, 0o440))
	for range 2 { // the second time, it is there
		require.NoError(t, outbox.Put(dir, source, "a/b/wal"))
	}
	path := filepath.Join(dir, "a/b/wal")
	got, err := os.ReadFile(path)
	if err != nil || string(got) != string(content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if info, err := os.Stat(path); err != nil || !info.ModTime().Equal(old) || info.Mode().Perm() != 0o440 {
		t.Errorf("%v, %v", info, err)
	}
	id, writers, err := sourcefile.Inspect(path)
	if err != nil || writers == sourcefile.NoWriters && id.ChangeTimeNS <= id.ModTimeNS {
		t.Errorf("%+v, %v: the copy is not complete at once", id, err)
	}
	other := append(random(300 << 10)[:300<<10-1], 'x')
	require.NoError(t, os.Chmod(source, 0o640))
	for name, content := range map[string][]byte{"other bytes": other, "shorter": content[:7], "empty": nil} {
		require.NoError(t, os.WriteFile(source, content, 0o640))
		if err := outbox.Put(dir, source, "a/b/wal"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, _ := os.ReadFile(path); string(got) != string(content) {
		t.Error("the first file was replaced")
	}
	for _, name := range []string{"", ".", "..", ".a", "a/.b", "../a", "/a", "a/", "a//b", "a\nb", "a\xff"} {
		if err := outbox.Put(dir, source, name); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
	if err := outbox.Put(dir, filepath.Join(dir, "missing"), "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing source: %v", err)
	}
	if err := outbox.Put(filepath.Join(dir, "missing"), source, "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing outbox: %v", err)
	}
	noNames(t, dir, ".gcsup-")
}

// TestPutFresh checks that a copy of a file that was written a moment ago is complete at once.
func TestPutFresh(t *testing.T) {
	dir, source := t.TempDir(), filepath.Join(t.TempDir(), "fresh")
	for range 20 {
		require.NoError(t, os.WriteFile(source, []byte("x"), 0o600))
		require.NoError(t, outbox.Put(dir, source, "fresh"))
		path := filepath.Join(dir, "fresh")
		if id, writers, err := sourcefile.Inspect(path); err != nil || writers == sourcefile.NoWriters && id.ChangeTimeNS <= id.ModTimeNS {
			t.Errorf("%+v, %v", id, err)
		}
		require.NoError(t, os.Remove(path))
	}
}

// TestPutTogether checks that of several processes that put other files under one name, one succeeds.
func TestPutTogether(t *testing.T) {
	dir, sources := t.TempDir(), t.TempDir()
	var group sync.WaitGroup
	var mu sync.Mutex
	var succeeded []string
	for _, content := range strings.Split("abcdefgh", "") {
		source := filepath.Join(sources, content)
		require.NoError(t, os.WriteFile(source, []byte(content), 0o600))
		group.Go(func() {
			switch err := outbox.Put(dir, source, "name"); {
			case err == nil:
				mu.Lock()
				defer mu.Unlock()
				succeeded = append(succeeded, content)
			case !errors.Is(err, fs.ErrExist):
				t.Errorf("%s: %v", content, err)
			}
		})
	}
	group.Wait()
	got, err := os.ReadFile(filepath.Join(dir, "name"))
	if err != nil || len(succeeded) != 1 || succeeded[0] != string(got) {
		t.Errorf("%q have succeeded, and the file is %q, %v", succeeded, got, err)
	}
	noNames(t, dir, ".gcsup-")
}

// TestPutNotUploaded checks that Put refuses names that the outbox would not upload, because they are links or
// lead through one.
func TestPutNotUploaded(t *testing.T) {
	dir, source := t.TempDir(), filepath.Join(t.TempDir(), "source")
	elsewhere := t.TempDir()
	for _, path := range []string{source, filepath.Join(elsewhere, "same")} {
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	}
	if err := errors.Join(os.Symlink(elsewhere, filepath.Join(dir, "link")), os.Symlink(source, filepath.Join(dir, "same"))); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"link/new", "link/same", "link/sub/new", "same", "lost+found", "lost+found/x"} {
		if err := outbox.Put(dir, source, name); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) != 1 {
		t.Errorf("beside the file that was there are %v, %v", left, err)
	}
	require.NoError(t, outbox.Put(dir, source, "a/lost+found"))
}
