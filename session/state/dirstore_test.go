package state_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session/internal/secrettest"
	"gcsup/session/state"
)

// newDir returns the path of a state directory that does not exist yet. It is
// not t.TempDir, whose mode depends on the umask of the user.
func newDir(t *testing.T) string { return filepath.Join(testsize.MemDir(t), "uploads") }

func openDir(t *testing.T, path string) *state.Dir {
	t.Helper()
	d, err := state.OpenDir(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// oneSaved returns a store with one saved upload, and the path of its file.
func oneSaved(t *testing.T) (*state.Dir, *state.Upload, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state", "uploads")
	d, saved := openDir(t, path), sample(t)
	require.NoError(t, d.Save(t.Context(), saved))
	return d, saved, filepath.Join(path, saved.ID+".json")
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestDeleteOfAnInvalidID checks that an ID, which is the name of a file, cannot name a file outside the directory. The contract has
// the other methods.
func TestDeleteOfAnInvalidID(t *testing.T) {
	d, _, _ := oneSaved(t)
	for _, id := range []string{"", ".", "..", "../x", "a/b", `a\b`, "a.json", "a b", "ä", "a\x00", strings.Repeat("x", 65)} {
		if err := d.Delete(t.Context(), id); !errors.Is(err, state.ErrNotFound) {
			t.Errorf("Delete(%q): %v, want ErrNotFound", id, err)
		}
	}
}

// TestErrorOfLoadNamesTheFile checks that the error of an upload that cannot be used has the path of its file, and no secret.
func TestErrorOfLoadNamesTheFile(t *testing.T) {
	for want, data := range map[error][]byte{
		state.ErrCorrupt: nil,
		state.ErrVersion: encoded(t, func(m map[string]any) { m["tomorrow"] = 1 }),
	} {
		d, saved, path := oneSaved(t)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		if _, err := d.Load(t.Context(), saved.ID); !errors.Is(err, want) || !strings.Contains(err.Error(), path) || secrettest.In(err.Error()) {
			t.Errorf("Load: %v, want %v with %s", err, want, path)
		}
	}
}

// TestSetAside checks that a damaged saved upload is kept under another name.
func TestSetAside(t *testing.T) {
	d, saved, path := oneSaved(t)
	require.NoError(t, os.WriteFile(path, []byte("damaged"), 0o600))
	require.NoError(t, state.SetAside(t.Context(), d, saved.ID))
	aside := strings.TrimSuffix(path, ".json") + ".damaged"
	if kept, err := os.ReadFile(aside); err != nil || string(kept) != "damaged" {
		t.Errorf("kept %q, %v", kept, err)
	}
	if err := d.SetAside(t.Context(), "../x"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("SetAside of a path: %v, want ErrNotFound", err)
	}
}

// TestSetAsideWithoutQuarantine checks that a Store that cannot keep a damaged
// saved upload deletes it.
func TestSetAsideWithoutQuarantine(t *testing.T) {
	d, saved, path := oneSaved(t)
	require.NoError(t, state.SetAside(t.Context(), struct{ state.Store }{d}, saved.ID))
	if got := files(t, filepath.Dir(path)); len(got) != 0 {
		t.Errorf("files %v are left", got)
	}
}

// TestDamagedUploadsAreForgotten checks that damaged saved uploads, and those that a killed
// process left half saved, are removed after their session has expired. They have a
// secret. Files of other programs, and of a process that holds the lock, are kept.
func TestDamagedUploadsAreForgotten(t *testing.T) {
	d, saved, path := oneSaved(t)
	dir := filepath.Dir(path)
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	half := string(written[:len(written)/2])
	const old, young = state.Lifetime + time.Hour, state.Lifetime - time.Hour
	for name, f := range map[string]struct {
		content string
		age     time.Duration
	}{
		"old.damaged": {"", old}, "young.damaged": {"", young}, "not ours.damaged": {"", old}, "held.damaged": {"", old},
		"old.tmp": {half, old}, "young.tmp": {half, young}, "not ours.tmp": {half, old}, "held.tmp": {half, old},
		"notours.tmp": {"thesis", old}, "empty.tmp": {"", old}, saved.ID + ".json": {string(written), old},
	} {
		name = filepath.Join(dir, name)
		then := time.Now().Add(-f.age)
		require.NoError(t, errors.Join(os.WriteFile(name, []byte(f.content), 0o600), os.Chtimes(name, then, then)))
	}
	unlock, err := d.Lock(t.Context(), "held")
	require.NoError(t, err)
	openDir(t, dir)
	unlock()
	want := []string{
		saved.ID + ".json", "empty.tmp", "held.damaged", "held.tmp", "not ours.damaged", "not ours.tmp", "notours.tmp", "young.damaged", "young.tmp",
	}
	slices.Sort(want)
	if got := files(t, dir); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

// TestLocalTimeDeletesNothing checks that a clock that jumps does not delete a
// saved upload. Only the service decides what has expired.
func TestLocalTimeDeletesNothing(t *testing.T) {
	d, saved, path := oneSaved(t)
	for _, created := range []time.Time{time.Now().Add(-100 * state.Lifetime), time.Now().Add(100 * state.Lifetime)} {
		saved.Created = created
		require.NoError(t, d.Save(t.Context(), saved))
		require.NoError(t, os.Chtimes(path, created, created))
		again := openDir(t, filepath.Dir(path))
		unlock, err := again.Lock(t.Context(), saved.ID)
		require.NoError(t, err)
		ids, err := again.List(t.Context())
		if err != nil || !slices.Equal(ids, []string{saved.ID}) {
			t.Errorf("List() = %v, %v, want it", ids, err)
		}
		if got, err := again.Load(t.Context(), saved.ID); err != nil || !same(t, got, saved) {
			t.Errorf("Load = %v, %v, want what was saved", got, err)
		}
		unlock()
	}
}

// TestFailedSave checks that a Save that fails keeps the old saved upload.
func TestFailedSave(t *testing.T) {
	d, saved, path := oneSaved(t)
	old := *saved
	temp := strings.TrimSuffix(path, ".json") + ".tmp"
	require.NoError(t, os.MkdirAll(filepath.Join(temp, "in the way"), 0o700))
	saved.Committed++
	err := d.Save(t.Context(), saved)
	if _, ok := errors.AsType[*fs.PathError](err); !ok {
		t.Errorf("Save: %v, want a *fs.PathError in it", err)
	}
	if got, err := d.Load(t.Context(), saved.ID); err != nil || !same(t, got, &old) {
		t.Errorf("Load = %v, %v, want the old Upload", got, err)
	}
}

// TestOpenDirErrors checks that the error is about the directory that cannot be made, not about one that is missing later.
func TestOpenDirErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, path := range []string{"", file, filepath.Join(file, "below"), filepath.Join(t.TempDir(), strings.Repeat("x", 300))} {
		d, err := state.OpenDir(path)
		if err == nil {
			_ = d.Close()
			t.Errorf("OpenDir(%q) = nil error", path)
		} else if e, ok := errors.AsType[*fs.PathError](err); path != "" && !ok || strings.HasSuffix(path, "xx") && e.Op != "mkdir" {
			t.Errorf("OpenDir(%q): %v, want a *fs.PathError in it", path, err)
		}
	}
}

// TestRelativeDir checks that a relative path of the directory does not change
// with the working directory.
func TestRelativeDir(t *testing.T) {
	base := t.TempDir()
	t.Chdir(base)
	d, saved := openDir(t, "uploads"), sample(t)
	t.Chdir(t.TempDir())
	unlock, err := d.Lock(t.Context(), saved.ID)
	require.NoError(t, err)
	defer unlock()
	require.NoError(t, d.Save(t.Context(), saved))
	if got, want := files(t, filepath.Join(base, "uploads")), []string{saved.ID + ".json", saved.ID + ".lock"}; !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}
