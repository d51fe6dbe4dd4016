package upload_test

import (
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
		w.fails(session.ErrSourceChanged)(up.File(w.t.Context(), path, spec))
		w.wantNoObject("obj")
	})
}
