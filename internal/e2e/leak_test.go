//go:build unix

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session/state"
	"gcsup/upload"
)

var cancels = flag.Int("cancels", testsize.Full(300, 40), "how many uploads to cancel")

// TestNothingIsLeftOfCanceledUploads checks that hundreds of uploads of files and
// streams leak no goroutine or file descriptor if they are canceled at random moments
// over real connections. No test may run in parallel with it, because it counts the
// goroutines and descriptors of the process.
func TestNothingIsLeftOfCanceledUploads(t *testing.T) {
	random := seeded(t, 0)
	dir := t.TempDir()
	path := filepath.Join(dir, "source")
	content := source(t, path, 9<<20, 1)
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil { // not on Linux
			return 0
		}
		return len(entries)
	}
	uploads(t, random, dir, path, content, 20) // warm up: the runtime opens some files once
	goroutines, files := runtime.NumGoroutine(), open()
	canceled, done := uploads(t, random, dir, path, content, *cancels)
	t.Logf("%d canceled, %d finished before", canceled, done)
	if canceled < *cancels/2 {
		t.Errorf("%d of %d uploads were canceled, which is too few for the test", canceled, *cancels)
	}
	// A closed connection may take a moment to disappear.
	if !until(nil, time.Millisecond, func() bool { return runtime.NumGoroutine() <= goroutines && open() <= files }) {
		var stacks bytes.Buffer
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		t.Errorf("%d goroutines, before %d; %d open files, before %d\n%s", runtime.NumGoroutine(), goroutines, open(), files, &stacks)
	}
	t.Logf("goroutines %d, before %d; open files %d, before %d", runtime.NumGoroutine(), goroutines, open(), files)
}

// uploads makes n uploads, a few at a time, and cancels each at a random
// moment.
func uploads(t *testing.T, random chance, dir, path string, content []byte, n int) (canceled, done int) {
	t.Helper()
	srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true, Discard: true, NoMD5: true, Rate: 256 << 20})
	store, err := state.OpenDir(filepath.Join(dir, "state"))
	require.NoError(t, err)
	transport := upload.NewTransport(nil)
	up, err := upload.New(&http.Client{Transport: transport}, &upload.Options{Endpoint: srv.URL, Store: store})
	require.NoError(t, err)
	var mu sync.Mutex
	var wg sync.WaitGroup
	type job struct {
		i     int
		after time.Duration
	}
	jobs := make(chan job)
	for range 8 {
		wg.Go(func() {
			for j := range jobs {
				ctx, cancel := context.WithTimeout(t.Context(), j.after)
				spec := upload.Spec{Bucket: "bkt", Object: fmt.Sprint(j.i)}
				var err error
				if j.i%2 == 0 {
					_, err = up.File(ctx, path, spec)
				} else {
					_, err = up.Reader(ctx, io.MultiReader(bytes.NewReader(content)), spec)
				}
				cancel()
				mu.Lock()
				switch {
				case err == nil:
					done++
				case errors.Is(err, context.DeadlineExceeded):
					canceled++
				default:
					t.Errorf("upload %d: %v", j.i, err)
				}
				mu.Unlock()
			}
		})
	}
	for i := range n {
		jobs <- job{i, random.below(30 * time.Millisecond)}
	}
	close(jobs)
	wg.Wait()
	transport.CloseIdleConnections()
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	return canceled, done
}
