package upload_test

import (
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// TestStreamRequestsShrinkAfterUnalignedCommit checks that a stream's requests become
// shorter on a network that cuts long ones, even if the committed offset is between
// two boundaries.
func TestStreamRequestsShrinkAfterUnalignedCommit(t *testing.T) {
	short := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectShortCommit, Bytes: 8*q - 100}}
	cut := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: 3, Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503}}
	const want = `start  -> 200
put 0-2097151/* -> 200 bytes=0-99 (short-commit)
put 100-2097151/* -> 503 (status-after)
query */* -> 200 bytes=0-99
put 100-2097151/* -> 503 (status-after)
query */* -> 200 bytes=0-99
put 100-786431/* -> 503 (status-after)
query */* -> 200 bytes=0-99
put 100-524287/* -> 200 bytes=0-524287
put 524288-1048575/* -> 200 bytes=0-1048575
put 1048576-2097151/* -> 200 bytes=0-2097151
finalize 2097152-2359302/2359303 -> 200
`
	inBubble(t, &fakegcs.Options{Faults: []faults.Fault{short, cut}}, func(w *world) {
		content := data(9*q + 7)
		if _, err := w.uploader(func(o *upload.Options) { o.Window = int(8 * q) }).Reader(w.t.Context(), pieces(content), spec); err != nil {
			t.Fatal(err)
		}
		w.wantObject("obj", content)
		if got := w.trace(); got != want {
			t.Errorf("requests\n%swant\n%s", got, want)
		}
	})
}
