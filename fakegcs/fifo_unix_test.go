//go:build unix

package fakegcs_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
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
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
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
	require.NoError(t, err)
	defer reader.Close()
	if status := <-finished; status != 200 {
		t.Errorf("the upload: %d", status)
	}
}

// blockWrites makes the next write to each of the files block until the end of the test, or
// until the returned function is called.
func blockWrites(t *testing.T, paths ...string) (release func()) {
	t.Helper()
	for _, path := range paths {
		require.NoError(t, syscall.Mkfifo(path, 0o600))
	}
	var readers []*os.File
	release = func() {
		for _, path := range paths {
			if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil { // does not wait for a writer
				readers = append(readers, f)
			}
		}
		paths = nil
	}
	t.Cleanup(func() {
		release()
		for _, f := range readers {
			_ = f.Close()
		}
	})
	return release
}

// temporaryRecord returns the path to which the record of a generation in the bucket bkt is
// written first.
func temporaryRecord(dir, name string, generation int64) string {
	hash := sha256.Sum256([]byte(name))
	return filepath.Join(dir, "buckets", "bkt", fmt.Sprintf("%x-%d.tmp", hash[:16], generation))
}

// While the record of an object is written, requests for other objects do not wait, those
// that read the object get its older generation, and those that change it wait.
func TestWritersDoNotWait(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for a request that must not be answered")
	}
	for name, change := range map[string]struct {
		method, target, body string
		fresh                bool // it makes a generation
	}{
		"insert":  {"PUT", "/bkt/blocked", "newer", true},
		"move":    {"POST", "/storage/v1/b/bkt/o/moved/moveTo/o/blocked", "", true},
		"patch":   {"PATCH", "/storage/v1/b/bkt/o/blocked", `{"metadata":{"a":"b"}}`, false},
		"acl":     {"POST", "/storage/v1/b/bkt/o/blocked/acl", `{"entity":"allUsers","role":"READER"}`, false},
		"archive": {"DELETE", "/storage/v1/b/bkt/o/blocked", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w := newWorld(t, &fakegcs.Options{Dir: dir, ClockSkew: time.Hour})
			w.insert("blocked", "older")
			w = w.again(dir) // whose generations are consecutive, because its clock is behind
			w.do("PATCH", "/storage/v1/b/bkt", []byte(`{"versioning":{"enabled":true}}`))
			insert := func(name string) (generation int64) { // by a request, which ends even if the server hangs
				generation, err := strconv.ParseInt(fmt.Sprint(w.insert(name, name)["generation"]), 10, 64)
				require.NoError(t, err)
				return generation
			}
			insert("moved")
			insert("old")
			older, _ := w.gcs.Object("bkt", "blocked")
			last := insert("next")
			blocked := []string{temporaryRecord(dir, "blocked", older.Generation)}
			if change.fresh {
				blocked = nil
				for i := range int64(300) {
					blocked = append(blocked, temporaryRecord(dir, "blocked", last+1+i))
				}
			}
			release := blockWrites(t, blocked...)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			w.ctx = ctx
			done := make(chan answer)
			go func() {
				a, err := w.try(change.method, change.target, []byte(change.body))
				if err != nil {
					t.Error(err)
				}
				done <- a
			}()
			for change.fresh { // until the change has its generation
				next := insert("next")
				if next > last+1 {
					break
				}
				last = next
				time.Sleep(time.Millisecond)
			}
			shortly, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			waiting := *w
			waiting.ctx = shortly
			if a, err := waiting.try("PATCH", "/storage/v1/b/bkt/o/blocked", []byte(`{"contentType":"a/b"}`)); err == nil {
				t.Errorf("another change of the object did not wait: %d %s", a.StatusCode, a.body)
			}
			for _, request := range []struct {
				method, target, body string
				status               int
			}{
				{"PUT", "/bkt/new", "new", 200},
				{"PUT", "/bkt/old", "newer", 200},
				{"PATCH", "/storage/v1/b/bkt/o/old", `{"metadata":{"a":"b"}}`, 200},
				{"POST", "/storage/v1/b/bkt/o/composed/compose", `{"sourceObjects":[{"name":"old"},{"name":"blocked"}]}`, 200},
				{"POST", "/storage/v1/b/bkt/o/old/rewriteTo/b/bkt/o/copy", "", 200},
				{"POST", "/storage/v1/b/bkt/o/copy/moveTo/o/renamed", "", 200},
				{"DELETE", "/bkt/new", "", 204},
				{"GET", "/storage/v1/b/bkt/o", "", 200},
				{"GET", "/_fakegcs/", "", 200},
				{"GET", "/bkt/blocked", "", 200},
			} {
				a, err := w.try(request.method, request.target, []byte(request.body))
				if err != nil {
					t.Fatalf("%s %s: %v", request.method, request.target, err)
				}
				if a.StatusCode != request.status {
					t.Errorf("%s %s: %d %s", request.method, request.target, a.StatusCode, a.body)
				}
				if request.target == "/bkt/blocked" && (a.body != "older" || a.Header.Get("X-Goog-Generation") != strconv.FormatInt(older.Generation, 10)) {
					t.Errorf("during the change, the object has %q", a.body)
				}
			}
			release()
			if a := <-done; a.Response != nil && a.StatusCode/100 != 2 {
				t.Errorf("the change: %d %s", a.StatusCode, a.body)
			}
		})
	}
}
