package fleet_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"gcsup/fakegcs"
)

// TestOtherMount kills a worker in the middle of an upload. Another worker has the tree on another
// mount, to which the same path leads, and continues the upload.
func TestOtherMount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &fakegcs.Options{Rate: 16 << 20})
	w.write("large", 12<<20, 1)
	first, second := w.tree, t.TempDir()
	copyFile(t, filepath.Join(first, "large"), filepath.Join(second, "large"))
	w.tree = filepath.Join(t.TempDir(), "data")
	mount := func(dir string) {
		_ = os.Remove(w.tree)
		noErr(t, os.Symlink(dir, w.tree))
	}
	mount(first)
	q := w.queue()
	w.submit(q)
	var v *victim
	started := make(chan struct{})
	w.afterPuts("tree/large", 4, func() {
		<-started
		v.kill()
	})
	v = w.start("first", chunked)
	close(started)
	<-v.done
	mount(second)
	w.run(t.Context(), w.worker(q, "second", chunked))
	w.tree = second
	w.check()
	at, starts := w.resumedAt("tree/large"), w.puts("tree/large")
	if at < 4<<20 || !slices.Contains(starts, at) {
		t.Errorf("requests began at %v, want one at the committed offset %d, after 4 MiB", starts, at)
	}
	for i, s := range starts {
		if slices.Contains(starts[:i], s) && s < at {
			t.Errorf("the bytes at %d were sent again: %v", s, starts)
		}
	}
	if left := w.saved(); len(left) != 0 {
		t.Errorf("saved uploads %v are left", left)
	}
}

// copyFile copies a file with its modification time.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(from)
	if err == nil {
		err = os.Chtimes(to, info.ModTime(), info.ModTime())
	}
	if err != nil {
		t.Fatal(err)
	}
}
