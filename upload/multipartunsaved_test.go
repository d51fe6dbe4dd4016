package upload_test

import (
	"errors"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// TestMultipartRestartUnsaved resumes an upload whose multipart upload is gone, while the disk is full. The
// next multipart upload cannot be saved. No later process could abort it, so that no part is sent.
func TestMultipartRestartUnsaved(t *testing.T) {
	t.Parallel()
	content := data(multipartLarge)
	inBubble(t, slowly, func(w *world) {
		path := w.file(content)
		w.interruptMultipart(path)
		w.abortAll()
		before := len(w.srv.Requests())
		_, err := w.uploader(byMultipart, func(o *upload.Options) { o.Store = hook(w.store, failAfter(0, errFull), "Save") }).File(w.t.Context(), path, spec)
		if !errors.Is(err, errFull) {
			t.Errorf("error = %v", err)
		}
		for _, r := range w.srv.Requests()[before:] {
			if r.Op == faults.OpPartsPut {
				t.Error("a part was sent")
			}
		}
		w.wantNoUploads()
		if _, err := w.uploader(byMultipart).File(w.t.Context(), path, spec); err != nil {
			t.Fatalf("%v\n%s", err, w.trace())
		}
		w.wantOnlyObject(content)
	})
}
