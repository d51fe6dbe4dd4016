package outbox_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/cloudtest"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session/state"
	"gcsup/upload"
	"gcsup/upload/outbox"
)

// world is a server with a bucket, and a directory. Its time is virtual.
type world struct {
	t     *testing.T
	srv   *fakegcs.Server
	http  *http.Client
	store *state.Dir
	saved state.Store // for uploads, if it is not nil
	dir   string

	mu       sync.Mutex
	attempts []outbox.Attempt
	warnings []string
}

// inBubble runs f in a world.
func inBubble(t *testing.T, opts fakegcs.Options, f func(w *world)) {
	t.Helper()
	t.Parallel()
	opts.NoMD5, opts.NoIdempotencyTokens = true, true
	dir, saved := filepath.Join(testsize.DiskDir(t), "out"), filepath.Join(testsize.MemDir(t), "state")
	require.NoError(t, os.Mkdir(dir, 0o700))
	synctest.Test(t, func(t *testing.T) {
		srv, transport, stop := cloudtest.Serve(t, &opts)
		store, err := state.OpenDir(saved)
		require.NoError(t, err)
		f(&world{t: t, srv: srv, http: &http.Client{Transport: transport}, store: store, dir: dir})
		stop()
		_ = store.Close()
	})
}

// uploader returns an Uploader for the server.
func (w *world) uploader() *upload.Uploader {
	w.t.Helper()
	up, err := upload.New(w.http, &upload.Options{Endpoint: "http://gcs.test", Store: cmp.Or[state.Store](w.saved, w.store), RestartChanged: true})
	require.NoError(w.t, err)
	return up
}

// upload makes an object.
func (w *world) upload(content []byte, spec upload.Spec) {
	w.t.Helper()
	_, err := w.uploader().Bytes(w.t.Context(), content, spec)
	require.NoError(w.t, err)
}

// open opens the outbox. Its objects are below in/.
func (w *world) open(opts outbox.Options) *outbox.Outbox {
	w.t.Helper()
	opts.Ended = func(a outbox.Attempt) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.attempts = append(w.attempts, a)
	}
	opts.Warn = func(text string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.warnings = append(w.warnings, text)
	}
	box, err := outbox.Open(w.dir, w.uploader(), upload.Spec{Bucket: "bkt", Object: "in/"}, &opts)
	require.NoError(w.t, err)
	box.WithoutNotifications()
	return box
}

// during runs the outbox while f runs, and checks that it ends soon.
func (w *world) during(opts outbox.Options, f func(box *outbox.Outbox)) {
	w.t.Helper()
	box := w.open(opts)
	w.run(box, func() { f(box) })
}

// run runs an open outbox while f runs, and checks that it ends soon.
func (w *world) run(box *outbox.Outbox, f func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- box.Run(ctx) }()
	f()
	began := time.Now()
	cancel()
	if err := <-ended; err != nil {
		w.t.Errorf("Run: %v", err)
	}
	if err := box.Close(); err != nil {
		w.t.Errorf("Close: %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		w.t.Errorf("Run ended after %v", took)
	}
}

// until waits until the condition holds, for at most an hour.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for began := time.Now(); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Since(began) > time.Hour {
			w.t.Errorf("after an hour: not %s", what)
			return
		}
	}
}

// untilEmpty waits until the backlog is empty.
func (w *world) untilEmpty(box *outbox.Outbox) {
	w.t.Helper()
	w.until("empty", func() bool { s := box.Status(); return s.Backlog.Files == 0 && !s.Scanned.IsZero() })
}

func (w *world) path(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

// random returns bytes that are always the same for a size.
func random(size int) []byte {
	b := make([]byte, size)
	rng := rand.NewChaCha8([32]byte{byte(size), byte(size >> 8), 7})
	_, _ = rng.Read(b)
	return b
}

// write makes a file in place.
func (w *world) write(name string, content []byte) {
	w.t.Helper()
	require.NoError(w.t, os.MkdirAll(filepath.Dir(w.path(name)), 0o700))
	require.NoError(w.t, os.WriteFile(w.path(name), content, 0o600))
}

// put makes a file that is complete.
func (w *world) put(name string, content []byte) {
	w.t.Helper()
	source := filepath.Join(w.t.TempDir(), "source")
	require.NoError(w.t, os.WriteFile(source, content, 0o600))
	require.NoError(w.t, outbox.Put(w.dir, source, name))
}

// wantFiles fails unless the directory has these files, hidden ones of the package left out.
func (w *world) wantFiles(names ...string) {
	w.t.Helper()
	var got []string
	err := fs.WalkDir(os.DirFS(w.dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if name == ".outbox" {
			return fs.SkipDir
		}
		if err == nil && !entry.IsDir() {
			got = append(got, name)
		}
		return err
	})
	require.NoError(w.t, err)
	if slices.Sort(names); !slices.Equal(got, names) {
		w.t.Errorf("the directory has %q, want %q", got, names)
	}
}

// wantObject fails unless the object in/name has that content.
func (w *world) wantObject(name string, want []byte) {
	w.t.Helper()
	if got, err := w.srv.ReadObject("bkt", "in/"+name); err != nil || !bytes.Equal(got, want) {
		w.t.Errorf("object in/%s has %d bytes, %v, want %d", name, len(got), err, len(want))
	}
}

// inserts returns how many small objects were sent.
func (w *world) inserts() int64 { return w.srv.Stats().Ops[faults.OpInsert] }

// ended returns the attempts at a file.
func (w *world) ended(name string) (list []outbox.Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.attempts {
		if a.Name == name {
			list = append(list, a)
		}
	}
	return list
}

// noNames reports whether a directory has no file whose name has the prefix.
func noNames(t *testing.T, dir, prefix string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(entry.Name(), prefix) {
			t.Errorf("%s is left", path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	require.NoError(t, err)
}
