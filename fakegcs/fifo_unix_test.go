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

// Between the record of an object and that of the session that made it nobody
// can delete the object: a kill there would leave a session that has made
// nothing, and has lost its bytes.
func TestNoDeleteBetweenRecords(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, &fakegcs.Options{Dir: dir})
	uri := w.start("x")
	w.put(uri, 0, q, "*")
	list, err := filepath.Glob(filepath.Join(dir, "sessions", "*"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	pipe := list[0] + ".tmp" // where the record is written first: it takes no byte until there is a reader
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
	for { // until the object's record is there
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
