package upload_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// TestEditedBeforeAFailure checks that an edit of the source during the upload is
// reported as such, even if a request fails after it. An earlier version reported
// damage at the server.
func TestEditedBeforeAFailure(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		path := w.file(data(9 * mib))
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: 2 * mib}})
		up := w.uploader(func(o *upload.Options) {
			o.Observer = func(e upload.Event) {
				if e.Kind == upload.Waiting {
					if err := editQuietly(path, 1000); err != nil {
						t.Error(err)
					}
				}
			}
		})
		if _, err := up.File(w.t.Context(), path, spec); !errors.Is(err, session.ErrSourceChanged) {
			t.Errorf("error = %v, want ErrSourceChanged", err)
		}
		w.wantNoObject("obj")
	})
}

// TestAppendedWhileOpened checks that a file that grows while it is opened is
// uploaded completely or not at all. An earlier version uploaded its first part.
func TestAppendedWhileOpened(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for _, size := range []int64{100, 9 * mib} {
		inBubble(t, nil, func(w *world) {
			content := []byte(strings.Repeat("x", int(size)))
			path := w.file(content)
			_, err := w.uploader(func(o *upload.Options) {
				// Another process writes after the file was opened, and before its first byte is read.
				o.Store = hook(w.store, func(context.Context) error { return appendTo(path, "second line\n") }, "Lock")
			}).File(w.t.Context(), path, spec)
			if err == nil {
				now, _ := os.ReadFile(path)
				if got, _ := w.srv.ReadObject("bkt", "obj"); !bytes.Equal(got, now) {
					t.Errorf("%d bytes: done, and the object has %d bytes, the file %d", size, len(got), len(now))
				}
			} else if !errors.Is(err, session.ErrSourceChanged) {
				t.Errorf("%d bytes: %v", size, err)
			}
		})
	}
}
