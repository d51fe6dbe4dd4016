package upload_test

import (
	"errors"
	"strings"
	"testing"

	"gcsup/session"
	"gcsup/upload"
)

// The bucket does not exist: the call fails at once, and reports nothing about parts.
func TestPartsMissingBucket(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string]*upload.Parts{
		"either":    upload.InParts(2, session.MultipartMinPart),
		"multipart": upload.InParts(2, session.MultipartMinPart).By(upload.ByMultipart),
		"auto":      upload.AutoPartsFrom(0, mib, mib),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, distant(0), func(w *world) {
				_, err := w.uploader(func(o *upload.Options) { o.Parallel = parts }).File(w.t.Context(), w.file(data(multipartLarge)), upload.Spec{Bucket: "missing", Object: "obj"})
				if !errors.Is(err, session.ErrNotFound) || strings.Contains(err.Error(), "refused") {
					t.Errorf("error = %v", err)
				}
				if w.saw(upload.Warning) != 0 || w.saw(upload.Undivided) != 0 || w.saw(upload.Started) != 0 {
					t.Errorf("%q\n%s", w.undivided(), w.trace())
				}
				w.wantSaved(0)
			})
		})
	}
}
