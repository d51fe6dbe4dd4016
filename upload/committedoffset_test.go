package upload_test

import (
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// TestUnalignedCommit checks that after a commit between two
// boundaries of 256 KiB no request is smaller than the service accepts.
func TestUnalignedCommit(t *testing.T) {
	t.Parallel()
	skipShort(t)
	short := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectShortCommit, Bytes: 100}}
	for _, size := range []int64{2*q + 1, 3*q + 5, 4 * q, 33*q + 1} {
		content := data(size)
		for _, chunkSize := range []int64{0, q, 4 * q} {
			if chunkSize == 0 && size < 8*mib {
				continue // goes in one request
			}
			inBubble(t, &fakegcs.Options{Faults: []faults.Fault{short}}, func(w *world) {
				_, err := w.uploader(func(o *upload.Options) { o.ChunkSize = chunkSize }).File(w.t.Context(), w.file(content), spec)
				if err != nil {
					t.Errorf("file of %d by %d: %v\n%s", size, chunkSize, err, w.trace())
				}
				w.wantObject("obj", content)
			})
		}
		inBubble(t, &fakegcs.Options{Faults: []faults.Fault{short}}, func(w *world) {
			if _, err := w.uploader(smallWindow).Reader(w.t.Context(), pieces(content), spec); err != nil {
				t.Errorf("stream of %d: %v\n%s", size, err, w.trace())
			}
			w.wantObject("obj", content)
		})
	}
}

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
