package upload_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// killedAfter is an option for a process that is killed: after some changes, no further
// change reaches the store.
func killedAfter(changes int64) func(*upload.Options) {
	return func(o *upload.Options) { o.Store = hook(o.Store, failAfter(changes, errKilled), "Save", "Delete") }
}

var errKilled = errors.New("killed")

// moveFile moves the source of an upload and returns its new path.
func (w *world) moveFile(path string) string {
	w.t.Helper()
	to := filepath.Join(w.dir, "moved")
	require.NoError(w.t, os.Rename(path, to))
	w.letPass(to)
	return to
}

// saved returns the IDs and paths that Saved yields.
func (w *world) saved() map[string]string {
	w.t.Helper()
	paths := map[string]string{}
	for saved, err := range w.uploader().Saved(w.t.Context()) {
		require.NoError(w.t, err)
		paths[saved.ID] = saved.Path
	}
	return paths
}

// TestTakeOver checks the result of each call after a TakeOver that was killed when both IDs had the upload, and after
// a complete one. Package saved has the other steps.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(large)
	for _, steps := range []int{2, 4} { // changes of the store
		for _, by := range []string{"Resume the old ID", "Resume", "File", "TakeOver again", "Cancel", "Query"} {
			t.Run(fmt.Sprintf("%s after %d steps", by, steps), func(t *testing.T) {
				inBubble(t, nil, func(w *world) {
					ctx := w.t.Context()
					path := w.file(content)
					old := w.interrupt(path, 2*mib, largeChunks).ID
					moved := w.moveFile(path)
					newID, err := w.uploader().ID(moved, spec)
					require.NoError(t, err)
					before := len(w.srv.Requests())
					id, err := w.uploader(killedAfter(int64(steps))).TakeOver(ctx, old, moved)
					if killed := errors.Is(err, errKilled); killed != (steps == 2) || !killed && (err != nil || id != newID) {
						t.Fatalf("TakeOver = %s, %v, want %s", id, err, newID)
					}
					if n := len(w.srv.Requests()); n != before {
						t.Errorf("TakeOver made a request:\n%s", w.trace())
					}
					if paths := w.saved(); len(paths) != 1 || paths[newID] != moved {
						t.Fatalf("saved are %v, want %s of %s", paths, newID, moved)
					}
					w.afterTakeOver(by, steps == 4, old, newID, moved, content)
				})
			})
		}
	}
}

// afterTakeOver uses the upload of a TakeOver that is complete, or was killed.
func (w *world) afterTakeOver(by string, complete bool, old, newID, moved string, content []byte) {
	t, ctx, up := w.t, w.t.Context(), w.uploader()
	t.Helper()
	resumed := func(res *upload.Result, err error) {
		t.Helper()
		if err != nil || res.ID != newID || res.ResumedFrom != 2*mib {
			t.Errorf("Result = %+v, %v, want upload %s resumed\n%s", res, err, newID, w.trace())
		}
		w.wantObject("obj", content)
		w.wantSaved(0)
	}
	known := old // an ID under which calls still find the upload
	if complete {
		known = newID
	}
	switch by {
	case "Resume the old ID":
		res, err := up.Resume(ctx, old)
		if !complete {
			resumed(res, err)
		} else if !errors.Is(err, state.ErrNotFound) {
			t.Errorf("Resume = %+v, %v", res, err)
		}
	case "Resume":
		resumed(up.Resume(ctx, newID))
	case "File":
		resumed(up.File(ctx, moved, spec))
	case "TakeOver again":
		id, err := up.TakeOver(ctx, known, moved)
		if err != nil || id != newID {
			t.Errorf("TakeOver = %s, %v, want %s", id, err, newID)
		}
		w.wantSaved(1)
		resumed(up.Resume(ctx, newID))
	case "Cancel":
		if err := up.Cancel(ctx, newID); err != nil {
			t.Errorf("Cancel: %v", err)
		}
		w.wantSaved(0)
	case "Query":
		if got, err := up.Query(ctx, known); err != nil || got.State != upload.SessionOpen || got.Stored != 2*mib {
			t.Errorf("Query = %+v, %v", got, err)
		}
		w.wantSaved(1)
	}
}

// TestOtherSourceRefused checks which arguments TakeOver and Import refuse, and that they then change nothing.
func TestOtherSourceRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		ctx, content := w.t.Context(), data(9*mib)
		id := w.interrupt(w.file(content), 5*mib).ID
		before := w.export(id)
		elsewhere, path := w.elsewhere(content)
		defer elsewhere.Close()
		short := filepath.Join(w.dir, "short")
		require.NoError(t, os.WriteFile(short, content[1:], 0o600))
		there := func(o *upload.Options) { o.Store = elsewhere }
		for _, tt := range []struct {
			name, path string
			with       func(*upload.Options)
			want       error
		}{
			{"another size", short, quiet, session.ErrSourceChanged},
			{"no file", filepath.Join(w.dir, "none"), quiet, fs.ErrNotExist},
			{"a directory", w.dir, quiet, chunk.ErrNotRegular},
			{"another endpoint", path, func(o *upload.Options) { o.Endpoint = "http://other.test" }, session.ErrURIMismatch},
			{"no store", path, withoutStore, state.ErrNotFound},
		} {
			_, err := w.uploader(tt.with).TakeOver(ctx, id, tt.path)
			_, ierr := w.uploader(there, tt.with).Import(ctx, decode(t, before), tt.path)
			if !errors.Is(err, tt.want) || !errors.Is(ierr, tt.want) || strings.Contains(fmt.Sprint(err, ierr), "upload_id") {
				t.Errorf("%s: %v, import: %v, want %v", tt.name, err, ierr, tt.want)
			}
		}
		w.fails(state.ErrNotFound)(w.uploader().TakeOver(ctx, "0123", path))
		if w.wantSaved(1); !bytes.Equal(w.export(id), before) {
			t.Error("the saved upload was changed")
		}
		for i, want := range []error{nil, fs.ErrExist} {
			if ids, err := elsewhere.List(ctx); err != nil || len(ids) != i {
				t.Errorf("%q are saved, %v, want %d", ids, err, i)
			}
			if _, err := w.uploader(there).Import(ctx, decode(t, before), path); !errors.Is(err, want) {
				t.Errorf("import %d: %v, want %v", i, err, want)
			}
		}
	})
}
