package upload_test

import (
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// TestStreamRequestsAfterUnalignedCommit checks that after a commit between two boundaries the next request of a
// stream ends at the second boundary, like that of a file. In an earlier version it carried the rest of the window.
// The requests become shorter on a network that cuts long ones nevertheless.
func TestStreamRequestsAfterUnalignedCommit(t *testing.T) {
	short := func(by int64) faults.Fault {
		return faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectShortCommit, Bytes: by}}
	}
	cut := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: 3, Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503}}
	for _, tt := range []struct {
		size, chunk, window int64
		faults              []faults.Fault
		want                string
	}{
		{4*q + 7, q, 0, []faults.Fault{short(100)}, `start  -> 200
put 0-262143/1048583 -> 200 bytes=0-262043 (short-commit)
put 262044-524287/1048583 -> 200 bytes=0-524287
put 524288-786431/1048583 -> 200 bytes=0-786431
put 786432-1048575/1048583 -> 200 bytes=0-1048575
finalize 1048576-1048582/1048583 -> 200
`},
		{4*q + 7, q, 4 * q, []faults.Fault{short(100)}, `start  -> 200
put 0-262143/* -> 200 bytes=0-262043 (short-commit)
put 262044-524287/* -> 200 bytes=0-524287
put 524288-786431/* -> 200 bytes=0-786431
put 786432-1048575/* -> 200 bytes=0-1048575
finalize 1048576-1048582/1048583 -> 200
`},
		{9*q + 7, 0, 8 * q, []faults.Fault{short(8*q - 100), cut}, `start  -> 200
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
`},
	} {
		inBubble(t, &fakegcs.Options{Faults: tt.faults}, func(w *world) {
			content := data(tt.size)
			opts := func(o *upload.Options) { o.ChunkSize, o.Window = tt.chunk, int(tt.window) }
			w.done(w.uploader(opts).Reader(w.t.Context(), pieces(content), spec))
			w.wantObject("obj", content)
			if got := w.trace(); got != tt.want {
				t.Errorf("window %d: requests\n%swant\n%s", tt.window, got, tt.want)
			}
		})
	}
}
