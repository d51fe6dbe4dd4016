package upload_test

import (
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// TestStreamKeepsChunkSizeAfterUnalignedCommit checks that after a commit between two
// boundaries the next request of a stream ends at the second boundary, like that of a
// file. In an earlier version it carried the rest of the window.
func TestStreamKeepsChunkSizeAfterUnalignedCommit(t *testing.T) {
	short := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectShortCommit, Bytes: 100}}
	for _, tt := range []struct {
		window int64
		want   string
	}{
		{0, `start  -> 200
put 0-262143/1048583 -> 200 bytes=0-262043 (short-commit)
put 262044-524287/1048583 -> 200 bytes=0-524287
put 524288-786431/1048583 -> 200 bytes=0-786431
put 786432-1048575/1048583 -> 200 bytes=0-1048575
finalize 1048576-1048582/1048583 -> 200
`},
		{4 * q, `start  -> 200
put 0-262143/* -> 200 bytes=0-262043 (short-commit)
put 262044-524287/* -> 200 bytes=0-524287
put 524288-786431/* -> 200 bytes=0-786431
put 786432-1048575/* -> 200 bytes=0-1048575
finalize 1048576-1048582/1048583 -> 200
`},
	} {
		inBubble(t, &fakegcs.Options{Faults: []faults.Fault{short}}, func(w *world) {
			content := data(4*q + 7)
			opts := func(o *upload.Options) { o.ChunkSize, o.Window = q, int(tt.window) }
			if _, err := w.uploader(opts).Reader(w.t.Context(), pieces(content), spec); err != nil {
				t.Fatal(err)
			}
			w.wantObject("obj", content)
			if got := w.trace(); got != tt.want {
				t.Errorf("window %d: requests\n%swant\n%s", tt.window, got, tt.want)
			}
		})
	}
}

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
