package upload_test

import (
	"errors"
	"os"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// TestSavedUploadHasTheSessionsOptions checks that the saved upload that is saved after a lost
// session has the options of the new session. In an earlier version it had those of
// the call.
func TestSavedUploadHasTheSessionsOptions(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(9 * mib)
		path := w.file(content)
		zero := int64(0)
		first := spec
		first.ContentType, first.IfGenerationMatch, first.NoClobber = "text/x-mine", &zero, true
		// First run: interrupted.
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStallBody, Bytes: 2 * mib}})
		w.timeOut(path, first)
		// Second run, options not given; the session is lost, the next one is interrupted.
		w.addFaults(
			faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Do: faults.Action{Effect: faults.EffectNotFound}},
			faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStallBody, Bytes: 2 * mib}},
		)
		res := w.timeOut(path, spec)
		doc, err := w.store.Load(w.t.Context(), res.ID)
		require.NoError(t, err)
		if doc.Spec.ContentType != "text/x-mine" || doc.Spec.IfGenerationMatch == nil || !doc.Spec.NoClobber {
			t.Errorf("token.Spec = %+v, want the options with which its session was started", doc.Spec)
		}
		// Another writer makes the object. Third run: session lost once more.
		w.done(w.uploader(func(o *upload.Options) { o.Store = nil }).File(w.t.Context(), writeOther(w, "other"), spec))
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Do: faults.Action{Effect: faults.EffectNotFound}})
		_, err = w.uploader().File(w.t.Context(), path, first)
		if !errors.Is(err, session.ErrPrecondition) {
			t.Errorf("third run with the first run's options: %v", err)
		}
		w.srv.ClearFaults()
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Do: faults.Action{Effect: faults.EffectNotFound}})
		_, err = w.uploader().Resume(w.t.Context(), res.ID)
		if !errors.Is(err, state.ErrNotFound) { // the third run ended for good
			t.Errorf("resume: %v", err)
		}
		w.wantObject("obj", []byte("other"))
	})
}

func writeOther(w *world, content string) string {
	p := w.dir + "/other"
	require.NoError(w.t, os.WriteFile(p, []byte(content), 0o600))
	return p
}
