package upload_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/grace"
	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// pausable are uploads that take several seconds in a world with the server of unhurried.
var pausable = []struct {
	name string
	with func(*upload.Options)
	size int64
	spec upload.Spec
}{
	{"one session", largeChunks, large, spec},
	{"parts by compose", byParts, partsLarge, spec},
	{"parts by multipart", byMultipart, 4*multipart.MinPart + 1, spec},
	{"compressed", func(o *upload.Options) { o.ChunkSize = q }, large, upload.Spec{Bucket: "bkt", Object: "obj", Gzip: true}},
}

// called is what a call returned.
type called struct {
	res *upload.Result
	err error
}

// begin starts an upload, and returns when bytes of it are committed.
func (w *world) begin(up *upload.Uploader, path string, s upload.Spec) (id string, result <-chan called) {
	w.t.Helper()
	moving := make(chan struct{})
	var once sync.Once
	done := make(chan called, 1)
	go func() {
		res, err := withCall(up, upload.CallOptions{Observer: func(e upload.Event) {
			w.mu.Lock()
			w.events = append(w.events, e)
			w.mu.Unlock()
			if e.Committed > 0 {
				once.Do(func() { close(moving) })
			}
		}}).File(w.t.Context(), path, s)
		done <- called{res, err}
	}()
	<-moving
	id, err := up.ID(path, s)
	require.NoError(w.t, err)
	return id, done
}

// unhurried are the options of a server to which the uploads of pausable take seconds.
func unhurried() *fakegcs.Options {
	return &fakegcs.Options{NoMD5: true, Rate: mib, Latency: 10 * time.Millisecond}
}

// TestPause checks that Pause interrupts a call of the same Uploader, returns when the
// upload is saved and can be resumed, and sends nothing.
func TestPause(t *testing.T) {
	t.Parallel()
	for _, tt := range pausable {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, unhurried(), func(w *world) {
				content := data(tt.size)
				path := w.file(content)
				up := w.uploader(tt.with, func(o *upload.Options) { o.ChunkSize = q })
				id, result := w.begin(up, path, tt.spec)
				require.NoError(t, up.Pause(w.t.Context(), id))
				// The lease is released, so that another Uploader can resume the upload at once.
				unlock, err := w.store.Lock(w.t.Context(), id)
				require.NoError(t, err)
				unlock()
				got := <-result
				e, ok := errors.AsType[*upload.InterruptedError](got.err)
				if !ok || !errors.Is(got.err, upload.ErrPaused) || errors.Is(got.err, context.Canceled) || !e.Resumable || !got.res.Resumable {
					t.Errorf("the call returned %+v, %v", got.res, got.err)
				}
				if got.err != nil && !strings.HasSuffix(got.err.Error(), ": paused") {
					t.Errorf("error = %v", got.err)
				}
				if n := w.saw(upload.Interrupted); n != 1 || w.saw(upload.Failed) != 0 {
					t.Errorf("%d interrupted events, %d failed ones", n, w.saw(upload.Failed))
				}
				w.wantSaved(1)
				if err := up.Pause(w.t.Context(), id); err != nil {
					t.Errorf("Pause of a paused upload: %v", err)
				}
				res, err := up.Resume(w.t.Context(), id)
				if err != nil || !res.Resumed || res.ResumedFrom == 0 {
					t.Fatalf("Resume: %+v, %v", res, err)
				}
				if !tt.spec.Gzip {
					w.wantOnlyObject(content)
				}
				w.wantError(up.Pause(w.t.Context(), id), state.ErrNotFound)
			})
		})
	}
}

// TestCancelRunning checks that Cancel interrupts a call of the same Uploader and then
// cancels the upload.
func TestCancelRunning(t *testing.T) {
	t.Parallel()
	for _, tt := range pausable {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, unhurried(), func(w *world) {
				path := w.file(data(tt.size))
				up := w.uploader(tt.with, func(o *upload.Options) { o.ChunkSize = q })
				id, result := w.begin(up, path, tt.spec)
				require.NoError(t, up.Cancel(w.t.Context(), id))
				got := <-result
				e, ok := errors.AsType[*upload.InterruptedError](got.err)
				if !ok || !errors.Is(got.err, session.ErrCanceled) || e.Resumable || got.res.Resumable {
					t.Errorf("the call returned %+v, %v", got.res, got.err)
				}
				w.wantSaved(0)
				w.wantNoObject("obj")
				w.wantNoLeftovers()
				w.wantNoUploads()
				if tt.name == "one session" && !strings.Contains(w.trace(), "\ncancel  -> 499\n") {
					t.Errorf("requests:\n%s", w.trace())
				}
			})
		})
	}
}

// TestCancelRunningFails checks that an upload stays saved if Cancel interrupts it, and
// the service is then down.
func TestCancelRunningFails(t *testing.T) {
	t.Parallel()
	inBubble(t, unhurried(), func(w *world) {
		content := data(large)
		path := w.file(content)
		up := w.uploader(resumable)
		id, result := w.begin(up, path, spec)
		w.addFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}})
		w.wantError(up.Cancel(w.t.Context(), id), session.ErrRetriesExhausted)
		if got := <-result; !errors.Is(got.err, session.ErrCanceled) {
			t.Errorf("the call returned %v", got.err)
		}
		w.srv.ClearFaults()
		if res, err := up.Resume(w.t.Context(), id); err != nil || !res.Resumed {
			t.Errorf("Resume: %+v, %v", res, err)
		}
		w.wantObject("obj", content)
	})
}

// TestPauseOfNothing checks the errors of Pause if no call of the Uploader runs the
// upload.
func TestPauseOfNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, unhurried(), func(w *world) {
		path := w.file(data(large))
		up, other := w.uploader(resumable), w.uploader(resumable)
		id, err := up.ID(path, spec)
		require.NoError(t, err)
		for name, pause := range map[string]func(context.Context, string) error{"Pause": up.Pause, "Cancel": up.Cancel} {
			if err := pause(w.t.Context(), id); !errors.Is(err, state.ErrNotFound) {
				t.Errorf("%s of nothing: %v, want ErrNotFound", name, err)
			}
		}
		w.wantError(w.uploader(func(o *upload.Options) { o.Store = nil }).Pause(w.t.Context(), id), state.ErrNotFound)
		_, result := w.begin(other, path, spec)
		for name, pause := range map[string]func(context.Context, string) error{"Pause": up.Pause, "Cancel": up.Cancel} {
			if err := pause(w.t.Context(), id); !errors.Is(err, state.ErrInUse) {
				t.Errorf("%s of an upload of another Uploader: %v, want ErrInUse", name, err)
			}
		}
		if got := <-result; got.err != nil {
			t.Error(got.err)
		}
	})
}

// TestPauseByTheObserver checks that the Observer of an upload can pause it.
func TestPauseByTheObserver(t *testing.T) {
	t.Parallel()
	inBubble(t, unhurried(), func(w *world) {
		up := w.uploader(resumable)
		paused := errors.New("not called")
		call := withCall(up, upload.CallOptions{Observer: func(e upload.Event) {
			if e.Committed > 0 && !e.Kind.Terminal() {
				paused = up.Pause(w.t.Context(), e.ID)
			}
		}})
		if res, err := call.File(w.t.Context(), w.file(data(large)), spec); !errors.Is(err, upload.ErrPaused) || !res.Resumable {
			t.Errorf("the call returned %+v, %v", res, err)
		}
		synctest.Wait()
		if paused != nil {
			t.Error(paused)
		}
	})
}

// hangingSource is a source whose reads at or after an offset hang until the test ends.
type hangingSource struct {
	io.ReaderAt
	from int64
	free chan struct{}
}

func (h *hangingSource) ReadAt(p []byte, off int64) (int, error) {
	if off >= h.from {
		<-h.free
	}
	return h.ReaderAt.ReadAt(p, off)
}

// TestPauseDoesNotHang checks that a source that hangs holds neither the call that is
// interrupted nor a Pause whose context ends.
func TestPauseDoesNotHang(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(large)
		src := &hangingSource{strings.NewReader(string(content)), 2 * mib, make(chan struct{})}
		up := w.uploader(resumable)
		var id string
		done := make(chan called, 1)
		go func() {
			res, err := up.ReaderAt(w.t.Context(), src, large, "v1", spec)
			done <- called{res, err}
		}()
		synctest.Wait()
		for saved, err := range up.Saved(w.t.Context()) {
			require.NoError(t, err)
			id = saved.ID
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		if err := up.Pause(ctx, id); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 10*time.Second {
			t.Errorf("Pause: %v after %v", err, time.Since(began))
		}
		if got := <-done; !errors.Is(got.err, upload.ErrPaused) || !got.res.Resumable {
			t.Errorf("the call returned %v", got.err)
		}
		close(src.free)
		if err := up.Pause(w.t.Context(), id); err != nil {
			t.Errorf("Pause when the source answers: %v", err)
		}
		res, err := up.ReaderAt(w.t.Context(), strings.NewReader(string(content)), large, "v1", spec)
		if err != nil || !res.Resumed {
			t.Errorf("the next call: %+v, %v", res, err)
		}
		if sum := checksum.Update(0, content); res.Object.CRC32C != sum {
			t.Errorf("CRC32C = %08x, want %08x", res.Object.CRC32C, sum)
		}
	})
}

// TestCancellationWaitsForNoSource checks that a canceled upload whose source hangs returns soon, and reports what was committed.
func TestCancellationWaitsForNoSource(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		with func(*upload.Options)
		from int64 // what is read before the source hangs
	}{
		"session": {resumable, 0},
		"parts":   {func(o *upload.Options) { o.Parallel, o.ChunkSize = composed(2, 2*mib), q }, 4 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				src := &hangingSource{bytes.NewReader(data(8 * mib)), tt.from, make(chan struct{})}
				ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				_, err := w.uploader(withoutStore, tt.with).ReaderAt(ctx, src, 8*mib, "", spec)
				e, ok := errors.AsType[*upload.InterruptedError](err)
				if took := time.Since(began); !ok || !errors.Is(err, context.DeadlineExceeded) || e.Committed != tt.from || e.Sent != tt.from || took > 10*time.Second+grace.Call {
					t.Errorf("%+v after %v, want %d bytes committed", err, took, tt.from)
				}
				close(src.free)
				time.Sleep(time.Minute) // until the parts are removed
			})
		})
	}
}
