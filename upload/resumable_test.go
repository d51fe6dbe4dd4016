package upload_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// TestResumableIsAsInTheTable makes the situation of each sentinel for saved uploads. It
// checks that Result.Resumable is what the table says, and that it is true if and only if
// a later call resumes the upload when the cause is removed.
func TestResumableIsAsInTheTable(t *testing.T) {
	t.Parallel()
	skipShort(t)
	table := map[string]string{}
	for _, dir := range []string{"../session", "../session/state"} {
		_, rows := errorsOf(t, dir)
		for name, row := range rows {
			table[filepath.Base(dir)+"."+name] = row
		}
	}
	newer := func(s string) string { return strings.Replace(s, `"v":1`, `"v":9`, 1) }
	older := func(s string) string { return strings.Replace(s, `"v":9`, `"v":1`, 1) }
	file := func(ctx context.Context, up *upload.Uploader, path, _ string) (*upload.Result, error) {
		return up.File(ctx, path, spec)
	}
	resume := func(ctx context.Context, up *upload.Uploader, _, id string) (*upload.Result, error) {
		return up.Resume(ctx, id)
	}
	for _, tt := range []struct {
		name string
		want error
		call func(ctx context.Context, up *upload.Uploader, path, id string) (*upload.Result, error)
		make func(w *world, path, id string) (remove func())
		row  string // of the table, if it has more than "yes" or "no"
	}{
		{"state.ErrInUse", state.ErrInUse, file, func(w *world, _, id string) func() {
			unlock, err := w.store.Lock(w.t.Context(), id)
			require.NoError(w.t, err)
			return unlock
		}, ""},
		{"state.ErrVersion", state.ErrVersion, file, func(w *world, _, id string) func() {
			w.rewrite(id, newer, 0o600)
			return func() { w.rewrite(id, older, 0o600) }
		}, ""},
		{"state.ErrInsecurePermissions", state.ErrInsecurePermissions, file, func(w *world, _, id string) func() {
			w.rewrite(id, same, 0o644)
			return func() { w.rewrite(id, same, 0o600) }
		}, ""},
		{"state.ErrOptionsDiffer", state.ErrOptionsDiffer, func(ctx context.Context, up *upload.Uploader, path, _ string) (*upload.Result, error) {
			other := spec
			other.ContentType = "text/other"
			return up.File(ctx, path, other)
		}, nil, ""},
		{"session.ErrURIMismatch", session.ErrURIMismatch, resume, func(w *world, _, id string) func() {
			w.plant(id, id, func(t *state.Upload) { t.Endpoint = "http://other.test" })
			return func() { w.plant(id, id, func(t *state.Upload) { t.Endpoint = "http://gcs.test" }) }
		}, "[3]"},
		{"state.ErrCorrupt", state.ErrCorrupt, resume, func(w *world, _, id string) func() {
			w.rewrite(id, func(s string) string { return s[:len(s)/2] }, 0o600)
			return func() {}
		}, ""},
		{"state.ErrNotFound", state.ErrNotFound, resume, func(w *world, _, id string) func() {
			require.NoError(w.t, w.store.Delete(w.t.Context(), id))
			return func() {}
		}, ""},
		{"session.ErrSourceChanged", session.ErrSourceChanged, file, func(w *world, path, _ string) func() {
			times := func() time.Time {
				info, err := os.Stat(path)
				require.NoError(w.t, err)
				return info.ModTime()
			}
			old := times()
			set := func(to time.Time) {
				require.NoError(w.t, os.Chtimes(path, time.Time{}, to))
				w.letPass(path)
			}
			set(old.Add(-time.Hour))
			return func() { set(old) }
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if row := table[tt.name]; tt.row != "" && row != tt.row || row == "" {
				t.Fatalf("the table has %q", row)
			}
			inBubble(t, nil, func(w *world) {
				path := w.file(data(9 * mib))
				id := w.interrupt(path, 5*mib).ID
				remove := func() {}
				if tt.make != nil {
					remove = tt.make(w, path, id)
				}
				res, err := tt.call(w.t.Context(), w.uploader(), path, id)
				want := table[tt.name] != "no"
				if !errors.Is(err, tt.want) || res.Resumable != want {
					t.Errorf("%v, resumable %t, want %v, %t", err, res.Resumable, tt.want, want)
				}
				remove()
				if res, err := w.uploader().File(w.t.Context(), path, spec); err != nil || res.Resumed != want {
					t.Errorf("when the cause is removed: resumed %t, %v, want %t", res.Resumed, err, want)
				}
			})
		})
	}
}

// TestInUseIsNotAlwaysResumable checks that an upload in use is not resumable if the
// process that holds it has saved nothing.
func TestInUseIsNotAlwaysResumable(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		path := w.file(data(9 * mib))
		id, err := w.uploader().ID(path, spec)
		require.NoError(t, err)
		unlock, err := w.store.Lock(w.t.Context(), id)
		require.NoError(t, err)
		defer unlock()
		if res, err := w.uploader().File(w.t.Context(), path, spec); !errors.Is(err, state.ErrInUse) || res.Resumable {
			t.Errorf("%v, resumable %t, want ErrInUse, and nothing is saved", err, res.Resumable)
		}
	})
}

// TestResumableWhenCanceledWhileComparing checks that there are Verifying events while many bytes of a source are
// read again, and not before, and that the Result of an upload that is canceled meanwhile reports the saved upload.
func TestResumableWhenCanceledWhileComparing(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		path := w.file(data(40 * mib))
		w.interrupt(path, 36*mib)
		if n := w.saw(upload.Verifying); n != 0 {
			t.Errorf("%d Verifying events before there was anything to compare", n)
		}
		if err := os.Chmod(path, 0o640); err != nil { // change time only
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(w.t.Context())
		next := w.http.Transport
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.ContentLength != 0 {
				<-ctx.Done() // so that the upload does not end before the observer is called
			}
			return next.RoundTrip(req)
		})}
		res, err := w.uploader(func(o *upload.Options) {
			o.Observer = func(e upload.Event) {
				if e.Kind != upload.Verifying {
					return
				}
				if cancel(); e.Compared <= 0 || e.Compared >= e.ToCompare || e.ToCompare >= 40*mib {
					t.Errorf("Verifying %d of %d", e.Compared, e.ToCompare)
				}
			}
		}).File(ctx, path, spec)
		w.http = &http.Client{Transport: next}
		w.wantSaved(1)
		if !errors.Is(err, context.Canceled) || !res.Resumable {
			t.Errorf("error %v, Resumable %t; want that of the context, and a saved upload that can be resumed", err, res.Resumable)
		}
	})
}
