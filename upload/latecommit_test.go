package upload_test

import (
	"testing"

	"gcsup/fakegcs/faults"
)

// TestLateCommit checks that an upload survives a server that commits more bytes of
// an interrupted request after it has replied to a query.
func TestLateCommit(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(9 * mib)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectLateCommit, Bytes: 5 * mib, For: 3e9}})
		if _, err := w.uploader().File(w.t.Context(), w.file(content), spec); err != nil {
			t.Fatalf("%v\n%s", err, w.trace())
		}
		w.wantObject("obj", content)
	})
}
