package upload_test

import (
	"testing"
)

// TestTakeOverOfPartsReplaced kills TakeOver of an upload in parts after its first step, and then starts another
// upload of the file at its new path. That one is continued, and the parts of the first one are not forgotten.
func TestTakeOverOfPartsReplaced(t *testing.T) {
	t.Parallel()
	inBubble(t, slowly, func(w *world) {
		ctx, path := w.t.Context(), w.file(data(multipartLarge))
		old := w.interruptMultipart(path)
		moved := w.moveFile(path)
		w.fails(errKilled)(w.uploader(killedAfter(1)).TakeOver(ctx, old, moved))
		other := w.interruptAt(moved, spec, committing, largeChunks)
		if res, err := w.uploader(byMultipart).Resume(ctx, old); err != nil || res.ID != other.ID {
			t.Errorf("Resume = %+v, %v, want upload %s", res, err, other.ID)
		}
		for pruned, err := range w.uploader(byMultipart).Prune(ctx, nil) {
			if err != nil || !pruned.ToRemove || !pruned.Deleted {
				t.Errorf("pruned %+v, %v", pruned, err)
			}
		}
		w.wantNothing()
	})
}
