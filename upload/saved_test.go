package upload_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/internal/require"
	"gcsup/session/state"
	"gcsup/upload"
)

// plant saves a copy of a saved upload under another ID.
func (w *world) plant(id, as string, edit func(*state.Upload)) {
	w.t.Helper()
	doc, err := w.store.Load(w.t.Context(), id)
	require.NoError(w.t, err)
	doc.ID = as
	if edit != nil {
		edit(doc)
	}
	require.NoError(w.t, w.store.Save(w.t.Context(), doc))
}

// rewrite changes the file of a saved upload.
func (w *world) rewrite(id string, edit func(string) string, mode os.FileMode) {
	w.t.Helper()
	path := filepath.Join(w.state, id+".json")
	text, err := os.ReadFile(path)
	if err == nil {
		err = errors.Join(os.WriteFile(path, []byte(edit(string(text))), mode), os.Chmod(path, mode))
	}
	require.NoError(w.t, err)
}

func same(s string) string { return s }

// TestNewerUploadIsNotChanged checks that no call changes an upload that a newer program
// saved, and that a damaged one is set aside only by the holder of its lock.
func TestNewerUploadIsNotChanged(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		ctx, path := w.t.Context(), w.file(data(9*mib))
		id := w.interrupt(path, 2*mib).ID
		file := filepath.Join(w.state, id+".json")
		calls := map[string]func(*upload.Uploader) error{
			"File":     func(u *upload.Uploader) error { _, err := u.File(ctx, path, spec); return err },
			"Resume":   func(u *upload.Uploader) error { _, err := u.Resume(ctx, id); return err },
			"Cancel":   func(u *upload.Uploader) error { return u.Cancel(ctx, id) },
			"Query":    func(u *upload.Uploader) error { _, err := u.Query(ctx, id); return err },
			"TakeOver": func(u *upload.Uploader) error { _, err := u.TakeOver(ctx, id, path); return err },
			"Prune": func(u *upload.Uploader) (err error) {
				for _, err = range u.Prune(ctx, &upload.PruneOptions{MissingSource: true}) {
				}
				return err
			},
		}
		check := func(what string, want error) {
			before, err := os.ReadFile(file)
			require.NoError(t, err)
			for name, call := range calls {
				if err := call(w.uploader(func(o *upload.Options) { o.Restart, o.RestartChanged = true, true })); !errors.Is(err, want) {
					t.Errorf("%s of %s: %v, want %v", name, what, err, want)
				}
				if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
					t.Fatalf("%s changed %s: %v", name, what, err)
				}
			}
		}
		w.rewrite(id, func(s string) string { return strings.Replace(s, `"v":1`, `"v":9`, 1) }, 0o600)
		check("an upload of a newer version", state.ErrVersion)

		w.rewrite(id, func(s string) string { return s[:len(s)/2] }, 0o600)
		unlock, err := w.store.Lock(ctx, id)
		require.NoError(t, err)
		delete(calls, "Prune") // it loads the upload before it locks it
		check("a damaged upload that is locked", state.ErrInUse)
		unlock()
		if err := calls["File"](w.uploader()); err != nil || w.saw(upload.Discarded) != 1 {
			t.Errorf("%d Discarded events, %v", w.saw(upload.Discarded), err)
		}
		w.done(os.Stat(strings.TrimSuffix(file, ".json") + ".damaged"))
	})
}

// TestSaved checks which values Saved yields for usable uploads, and that unusable
// ones are errors that do not end the iteration.
func TestSaved(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		ctx := w.t.Context()
		path := w.file(data(9 * mib))
		id := w.interrupt(path, 5*mib).ID
		w.plant(id, "1-damaged", nil)
		w.rewrite("1-damaged", func(s string) string { return strings.Replace(s, "high_water", "high_wateR", 1) }, 0o600)
		w.plant(id, "2-newer", nil)
		w.rewrite("2-newer", func(s string) string { return strings.Replace(s, `"v":1`, `"v":9`, 1) }, 0o600)
		w.plant(id, "3-insecure", nil)
		w.rewrite("3-insecure", same, 0o644)
		w.plant(id, "z-elsewhere", func(t *state.Upload) { t.Endpoint = "http://other.test" })
		unlock, err := w.store.Lock(ctx, "z-elsewhere")
		require.NoError(t, err)
		defer unlock()

		doc, err := w.store.Load(ctx, id)
		require.NoError(t, err)
		if len(doc.Checkpoints) == 0 {
			t.Fatalf("token = %+v, want a checkpoint", doc)
		}
		want := map[string]upload.SavedUpload{id: {
			ID: id, Endpoint: "http://gcs.test", Spec: doc.Spec, Path: path, Size: 9 * mib,
			Committed: doc.Committed, Sent: max(doc.Committed, doc.Checkpoints[len(doc.Checkpoints)-1].Offset), Started: doc.Created, Expires: doc.Expires(),
		}}
		elsewhere := want[id]
		elsewhere.ID, elsewhere.Endpoint, elsewhere.InUse = "z-elsewhere", "http://other.test", true
		want["z-elsewhere"] = elsewhere
		wantErr := map[string]error{"1-damaged": state.ErrCorrupt, "2-newer": state.ErrVersion, "3-insecure": state.ErrInsecurePermissions}

		before := len(w.srv.Requests())
		last, n := "", 0
		for saved, err := range w.uploader().Saved(ctx) {
			if saved.ID <= last {
				t.Errorf("%s follows %s", saved.ID, last)
			}
			last = saved.ID
			n++
			if kind := wantErr[saved.ID]; kind != nil || err != nil {
				if !errors.Is(err, kind) || kind == nil || saved.Path != "" {
					t.Errorf("Saved yields %+v, %v, want %v", saved, err, kind)
				}
				continue
			}
			if got, want := fmt.Sprintf("%+v", saved), fmt.Sprintf("%+v", want[saved.ID]); got != want {
				t.Errorf("Saved yields\n%s, want\n%s", got, want)
			}
		}
		if n != 5 {
			t.Errorf("%d uploads, want 5", n)
		}

		for range w.uploader().Saved(ctx) {
			break // the iteration must end here
		}
		for range w.uploader(func(o *upload.Options) { o.Store = nil }).Saved(ctx) {
			t.Error("an upload without a store")
		}
		if len(w.srv.Requests()) != before {
			t.Errorf("Saved made a request:\n%s", w.trace())
		}
	})
}
