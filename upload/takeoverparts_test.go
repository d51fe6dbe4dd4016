package upload_test

import (
	"context"
	"errors"
	"testing"

	"gcsup/upload"
)

// TestTakeOverOfPartsReplaced kills TakeOver of an upload in parts after its first step, and then starts another
// upload of the file at its new path. That one is continued, and the parts of the first one are not forgotten.
func TestTakeOverOfPartsReplaced(t *testing.T) {
	t.Parallel()
	inBubble(t, slowly, func(w *world) {
		ctx, path := w.t.Context(), w.file(data(multipartLarge))
		old := w.interruptMultipart(path)
		moved := w.moveFile(path)
		if _, err := w.uploader(killedAfter(1)).TakeOver(ctx, old, moved); !errors.Is(err, errKilled) {
			t.Fatalf("TakeOver = %v", err)
		}
		short, stop := context.WithCancel(ctx)
		defer stop()
		other, err := w.uploader(largeChunks, func(o *upload.Options) {
			o.Observer = func(e upload.Event) {
				if e.Committed > 0 {
					stop()
				}
			}
		}).File(short, moved, spec)
		if !errors.Is(err, context.Canceled) || !other.Resumable {
			t.Fatalf("File = %+v, %v", other, err)
		}
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
