package upload_test

import (
	"errors"
	"testing"

	"gcsup/internal/require"
	"gcsup/upload"
)

// TestZippedInPartsUnsaved checks that no part of a compressed file is sent whose size cannot be saved. The next
// process chooses other sizes for the parts that are not saved, and makes the object.
func TestZippedInPartsUnsaved(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(zippedLarge)
	for _, saves := range []int64{1, 2} { // the first one has no part, and the second not all
		inBubbleWithMD5(t, slowly, func(w *world) {
			path := w.file(content)
			full := func(o *upload.Options) { o.Store = hook(w.store, failAfter(saves, errFull), "Save") }
			res, err := w.uploader(streamParts, full).File(w.t.Context(), path, zipped)
			if !errors.Is(err, errFull) || !res.Resumable {
				t.Fatalf("%d saves: %+v, %v", saves, res, err)
			}
			doc, err := w.store.Load(w.t.Context(), res.ID)
			require.NoError(t, err)
			var known int64
			for _, part := range doc.Parts.List {
				known += part.Size
			}
			if stored := w.storedParts(); stored > known {
				t.Errorf("%d saves: %d bytes are stored in parts, and parts of %d bytes are saved", saves, stored, known)
			}
			if res, err = w.uploader(streamParts).File(w.t.Context(), path, zipped); err != nil || !res.Resumed {
				t.Fatalf("%d saves: %+v, %v\n%s", saves, res, err, w.trace())
			}
			w.wantZipped(content)
		})
	}
}
