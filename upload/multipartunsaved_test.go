package upload_test

import (
	"errors"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// TestMultipartUnsaved starts an upload, and resumes one whose multipart upload is gone, while the disk is full. The
// next multipart upload cannot be saved. No later process could abort it, so that no part is sent.
func TestMultipartUnsaved(t *testing.T) {
	t.Parallel()
	content := data(multipartLarge)
	for _, resumed := range []bool{false, true} {
		inBubble(t, slowly, func(w *world) {
			path := w.file(content)
			if resumed {
				w.interruptMultipart(path)
				w.abortAll()
			}
			seen := len(w.srv.Requests())
			_, err := w.uploader(byMultipart, func(o *upload.Options) { o.Store = hook(w.store, failAfter(0, errFull), "Save") }).File(w.t.Context(), path, spec)
			if !errors.Is(err, errFull) {
				t.Errorf("resumed %v: error = %v", resumed, err)
			}
			for _, r := range w.srv.Requests()[seen:] {
				if r.Op == faults.OpPartsPut {
					t.Errorf("resumed %v: a part was sent", resumed)
				}
			}
			w.wantNoUploads()
			w.done(w.uploader(byMultipart).File(w.t.Context(), path, spec))
			w.wantOnlyObject(content)
		})
	}
}
