//go:build unix

package fakegcs_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs"
)

// An object cannot be deleted before the record of the session that made it is
// written. Otherwise a kill between the two could leave an active session whose bytes
// are lost.
func TestNoDeleteBetweenRecords(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	uri := w.start("x")
	w.put(uri, 0, q, "*")
	list, err := filepath.Glob(filepath.Join(dir, "sessions", "*"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	pipe := list[0] + ".tmp" // the record is written here first; a FIFO blocks the writer until there is a reader
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	finished := make(chan int)
	go func() {
		a, err := w.try("PUT", uri, nil, "Content-Range: bytes */262144")
		if err != nil {
			t.Error(err)
			finished <- 0
			return
		}
		finished <- a.StatusCode
	}()
	for { // until the object's record exists
		if list, _ := filepath.Glob(filepath.Join(dir, "buckets", "bkt", "*-*")); len(list) == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	deleter := *w
	deleter.ctx = ctx
	if a, err := deleter.try("DELETE", "/storage/v1/b/bkt/o/x", nil); err == nil {
		t.Errorf("the object could be deleted: %d", a.StatusCode)
	}
	reader, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if status := <-finished; status != 200 {
		t.Errorf("the upload: %d", status)
	}
}
