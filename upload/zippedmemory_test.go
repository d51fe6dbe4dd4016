package upload_test

import (
	"errors"
	"testing"

	"gcsup/upload"
)

// TestZippedInPartsMemory checks that a compressed file has no more parts than it may have, although parts end early if
// the memory does. Equal parts of 8 MiB would hold it, but the first one is the first window. With the memory of the
// second process, three parts would hold 21 MiB.
func TestZippedInPartsMemory(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(zippedLarge)
	three := func(o *upload.Options) {
		o.Window, o.Parallel = int(partedWindow), (&upload.Parts{Connections: 2, MinPart: 8 * mib}).AtMost(3)
	}
	for _, resumed := range []bool{false, true} {
		inBubbleWithMD5(t, slowly, func(w *world) {
			path, up := w.file(content), w.uploader(three)
			if resumed {
				full := func(o *upload.Options) { o.Store = hook(w.store, failAfter(1, errFull), "Save") }
				if res, err := w.uploader(three, full).File(w.t.Context(), path, zipped); !errors.Is(err, errFull) || !res.Resumable {
					t.Fatalf("%+v, %v", res, err)
				}
				up = w.uploader(three, func(o *upload.Options) { o.Memory = 8 * mib })
			}
			res, err := up.File(w.t.Context(), path, zipped)
			if err != nil || res.Resumed != resumed || res.Parts == nil || res.Parts.Count != 3 {
				t.Fatalf("resumed %v: %+v, %v\n%s", resumed, res, err, w.trace())
			}
			w.wantZipped(content)
		})
	}
}
