package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/fleet/internal/fleet"
	sessionbucket "gcsup/internal/bucket"
	"gcsup/internal/require"
	"gcsup/session"
)

// chunked makes a worker send requests of 1 MiB, so that it often gets a committed offset.
func chunked(o *fleet.WorkerOptions) { o.Upload.ChunkSize = 1 << 20 }

// afterPuts calls f once, after n requests with data for an object were answered. "" is any object.
func (w *world) afterPuts(object string, n int32, f func()) {
	var puts atomic.Int32
	w.onRequest.Store(new(func(r fakegcs.Request) {
		if r.Op == faults.OpPut && (object == "" || r.Object == object) && puts.Add(1) == n {
			f()
		}
	}))
}

// puts returns the offsets at which the requests with data for an object begin.
func (w *world) puts(object string) (starts []int64) {
	for _, r := range w.gcs.Requests() {
		var from, to, size int64
		if r.Object != object || r.Received == 0 {
			continue
		}
		if n, _ := fmt.Sscanf(r.ContentRange, "bytes %d-%d/%d", &from, &to, &size); n == 3 {
			starts = append(starts, from)
		}
	}
	return starts
}

// resumedAt returns the offset in the reply to the last status query for an object.
func (w *world) resumedAt(object string) int64 {
	at := int64(-1)
	for _, r := range w.gcs.Requests() {
		var to int64
		if r.Op == faults.OpQuery && r.Object == object && strings.HasPrefix(r.Range, "bytes=0-") {
			if n, _ := fmt.Sscanf(r.Range, "bytes=0-%d", &to); n == 1 {
				at = to + 1
			}
		}
	}
	return at
}

// TestTakeover kills a worker in the middle of an upload. Another one has the tree on another mount, to which the same path
// leads. It continues at the committed offset, within AckWait and 3 s.
func TestTakeover(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &fakegcs.Options{Rate: 16 << 20})
	w.write("large", 12<<20, 1)
	mounts := []string{w.tree, t.TempDir()}
	copyFile(t, filepath.Join(mounts[0], "large"), filepath.Join(mounts[1], "large"))
	w.tree = filepath.Join(t.TempDir(), "data")
	mount := func(dir string) {
		_ = os.Remove(w.tree)
		require.NoError(t, os.Symlink(dir, w.tree))
	}
	mount(mounts[0])
	q := w.queue()
	w.submit(q)

	var died time.Time
	started := make(chan *victim, 1)
	w.afterPuts("tree/large", 4, func() {
		first := <-started
		died = time.Now()
		first.kill()
	})
	first := w.start("first", chunked)
	started <- first
	<-first.done
	mount(mounts[1])

	resumed := make(chan time.Time, 1)
	w.afterPuts("tree/large", 1, func() { resumed <- time.Now() })
	w.run(t.Context(), w.worker(q, "second", chunked))
	if took := (<-resumed).Sub(died); took > w.ackWait+3*time.Second {
		t.Errorf("the upload continued after %v, want at most %v", took, w.ackWait+3*time.Second)
	} else {
		t.Logf("the upload continued after %v", took)
	}
	w.tree = mounts[1]
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
	w.wantSaved(0)
}

// copyFile copies a file with its modification time.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.WriteFile(to, must(os.ReadFile(from)), 0o666))
	modified := must(os.Stat(from)).ModTime()
	require.NoError(t, os.Chtimes(to, modified, modified))
}

// TestOtherChunkSize kills a worker when it has acquired the lease of an upload. Another worker, which sends
// the file in one request because its chunks are larger, leaves no saved upload.
func TestOtherChunkSize(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"file": 4 << 20})
	started := make(chan *victim, 1)
	kill := sync.OnceFunc(func() { (<-started).kill() })
	w.onRequest.Store(new(func(r fakegcs.Request) {
		if r.Op == faults.OpInsert && r.Bucket == stateBucket && strings.HasSuffix(r.Object, ".gcsup") {
			kill()
		}
	}))
	first := w.start("first", chunked)
	started <- first
	<-first.done
	w.wantSaved(1) // the lease of the worker that died
	w.run(t.Context(), w.worker(q, "second", nil))
	w.check()
	w.wantSaved(0)
}

// wantSaved checks how many saved uploads there are.
func (w *world) wantSaved(n int) {
	w.t.Helper()
	var names []string
	client := must(session.NewClient(w.gcs.Client(), w.gcs.URL))
	page, r := sessionbucket.List(w.t.Context(), client, sessionbucket.Query{Bucket: stateBucket})
	if page == nil {
		w.t.Fatal(r.Err)
	}
	for _, o := range page.Objects {
		if strings.HasSuffix(o.Name, ".gcsup") {
			names = append(names, o.Name)
		}
	}
	if len(names) != n {
		w.t.Errorf("saved uploads %v, want %d", names, n)
	}
}

// TestHandOver stops a worker as SIGTERM does. Another one continues at once.
func TestHandOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &fakegcs.Options{Rate: 16 << 20})
	w.ackWait = time.Minute
	w.write("large", 12<<20, 1)
	q := w.queue()
	w.submit(q)
	ctx, stop := context.WithCancel(t.Context())
	w.afterPuts("tree/large", 4, stop)
	w.run(ctx, w.worker(q, "first", chunked))
	began := time.Now()
	w.run(t.Context(), w.worker(q, "second", chunked))
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the second worker took %v", took)
	}
	w.check()
	if at := w.resumedAt("tree/large"); at < 4<<20 {
		t.Errorf("the service had %d bytes when the second worker asked, want at least 4 MiB", at)
	}
}

// TestWiped wipes JetStream while a worker is in the middle of an upload, and submits the tree again.
func TestWiped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &fakegcs.Options{Rate: 16 << 20})
	w.ackWait = 5 * time.Second
	w.write("large", 12<<20, 1)
	w.write("other", 12<<20, 2)
	w.fill("small/%d", 30, 1000)
	q := w.queue()
	w.submit(q)
	ctx, stop := context.WithCancel(t.Context())
	done, begun := make(chan struct{}), make(chan struct{})
	w.afterPuts("tree/large", 4, func() { close(begun) })
	worker := w.worker(q, "first", func(o *fleet.WorkerOptions) { o.Upload.ChunkSize, o.UntilEmpty = 1<<20, false })
	go func() {
		defer close(done)
		w.run(ctx, worker)
	}()
	<-begun
	w.wipe()
	w.submit(q)
	w.run(t.Context(), w.worker(w.queue(), "second", chunked))
	stop()
	<-done
	w.check()
	starts := w.puts("tree/large")
	if once := slices.Compact(slices.Sorted(slices.Values(starts))); len(once) != len(starts) {
		t.Errorf("some bytes were sent again: the requests began at %d", starts)
	}
}
