package upload_test

import (
	"errors"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// TestRejectedDataKeepsTheSavedUpload checks that data which the service refuses, in a
// session that is open, ends the run and keeps the saved upload. If the next run gets
// the same refusal, it starts a new session.
func TestRejectedDataKeepsTheSavedUpload(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(9 * mib)
		path := w.file(content)
		w.interrupt(path, 2*mib)
		refuse := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: 2, Do: faults.Action{Effect: faults.EffectStatus, Status: 400, Reason: "invalid"}}
		w.addFaults(refuse)
		res, err := w.uploader().File(w.t.Context(), path, spec)
		if !errors.Is(err, session.ErrProtocol) || !res.Resumable {
			t.Errorf("%+v, %v", res, err)
		}
		w.wantSaved(1)
		if res, err = w.uploader().File(w.t.Context(), path, spec); err != nil || w.saw(upload.Restarted) != 1 {
			t.Errorf("the next run: %+v, %v\n%s", res, err, w.trace())
		}
		w.wantObject("obj", content)
		w.wantSaved(0)
	})
}
