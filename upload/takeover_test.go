package upload_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"gcsup/fakegcs"
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
	if err := os.Rename(path, to); err != nil {
		w.t.Fatal(err)
	}
	w.letPass(to)
	return to
}

// saved returns the IDs and paths that Saved yields.
func (w *world) saved() map[string]string {
	w.t.Helper()
	paths := map[string]string{}
	for saved, err := range w.uploader().Saved(w.t.Context()) {
		if err != nil {
			w.t.Fatal(err)
		}
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
		for _, by := range []string{"Resume the old ID", "Resume", "File", "TakeOver again", "TakeOver back", "Cancel", "Query", "File at the old path"} {
			t.Run(fmt.Sprintf("%s after %d steps", by, steps), func(t *testing.T) {
				inBubble(t, nil, func(w *world) {
					ctx := w.t.Context()
					path := w.file(content)
					old := w.interrupt(path, 2*mib, largeChunks).ID
					moved := w.moveFile(path)
					newID, err := w.uploader().ID(moved, spec)
					if err != nil {
						t.Fatal(err)
					}
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
					w.afterTakeOver(by, steps == 4, old, newID, path, moved, content)
				})
			})
		}
	}
}

// afterTakeOver uses the upload of a TakeOver that is complete, or was killed.
func (w *world) afterTakeOver(by string, complete bool, old, newID, path, moved string, content []byte) {
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
	case "TakeOver again", "TakeOver back":
		to := moved
		if by == "TakeOver back" {
			if err := os.Rename(moved, path); err != nil {
				t.Fatal(err)
			}
			to, newID = path, old
		}
		id, err := up.TakeOver(ctx, known, to)
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
	case "File at the old path":
		// The session belongs to the other path: this is a new upload.
		if err := os.WriteFile(path, data(9*mib), 0o600); err != nil {
			t.Fatal(err)
		}
		if res, err := up.File(ctx, path, spec); err != nil || res.Resumed {
			t.Errorf("File = %+v, %v, want another upload", res, err)
		}
		w.wantObject("obj", data(9*mib))
		if paths := w.saved(); len(paths) != 1 || paths[newID] != moved {
			t.Errorf("saved are %v, want %s of %s", paths, newID, moved)
		}
	}
}

// TestTakeOverInPlace checks that an upload continues with a copy at the same path,
// if its bytes are those that were sent.
func TestTakeOverInPlace(t *testing.T) {
	skipShort(t)
	t.Parallel()
	content := data(9 * mib)
	for _, tt := range []struct {
		name string
		copy []byte
		err  error
	}{
		{"the same bytes", content, nil},
		{"a byte of what was sent", flipped(content, 100), session.ErrSourceChanged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The service reports no checksum of what it holds, which would be compared, too.
			inBubble(t, &fakegcs.Options{NoMD5: true}, func(w *world) {
				ctx, up := w.t.Context(), w.uploader()
				path := w.file(content)
				id := w.interrupt(path, 6*mib).ID
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
				w.file(tt.copy)
				if _, err := up.Resume(ctx, id); !errors.Is(err, session.ErrSourceChanged) {
					t.Fatalf("Resume of a replaced file: %v, want ErrSourceChanged", err)
				}
				if again, err := up.TakeOver(ctx, id, path); err != nil || again != id {
					t.Fatalf("TakeOver = %s, %v, want %s", again, err, id)
				}
				res, err := up.Resume(ctx, id)
				if !errors.Is(err, tt.err) {
					t.Fatalf("Resume = %+v, %v, want %v", res, err, tt.err)
				}
				if err != nil {
					w.wantNoObject("obj")
					w.wantSaved(1)
					return
				}
				if res.ResumedFrom != 6*mib {
					t.Errorf("Result = %+v", res)
				}
				w.wantObject("obj", content)
			})
		})
	}
}

// TestTakeOverRefused checks which arguments TakeOver refuses, and that it then
// changes nothing.
func TestTakeOverRefused(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		ctx := w.t.Context()
		content := data(9 * mib)
		path := w.file(content)
		id := w.interrupt(path, 5*mib).ID
		moved := w.moveFile(path)
		short := filepath.Join(w.dir, "short")
		if err := os.WriteFile(short, content[1:], 0o600); err != nil {
			t.Fatal(err)
		}
		before := string(w.export(id))
		refused := func(name, id, path string, want error, with ...func(*upload.Options)) {
			t.Helper()
			if _, err := w.uploader(with...).TakeOver(ctx, id, path); !errors.Is(err, want) {
				t.Errorf("%s: error = %v, want %v", name, err, want)
			}
		}
		refused("no such upload", "0123", moved, state.ErrNotFound)
		refused("no store", id, moved, state.ErrNotFound, func(o *upload.Options) { o.Store = nil })
		refused("no file", id, filepath.Join(w.dir, "none"), fs.ErrNotExist)
		refused("another size", id, short, session.ErrSourceChanged)
		refused("another endpoint", id, moved, session.ErrURIMismatch, func(o *upload.Options) { o.Endpoint = "http://other.test" })
		w.wantSaved(1)
		if string(w.export(id)) != before {
			t.Error("the saved upload was changed")
		}
	})
}
