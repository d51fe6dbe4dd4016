package upload_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gcsup/internal/checksum"
	"gcsup/session"
	"gcsup/upload"
)

// TestSizes checks the object at the boundaries of requests for each source that can be read again: that up to 8 MiB are sent
// in one request, and that nothing stays saved.
func TestSizes(t *testing.T) {
	t.Parallel()
	for name, call := range calls {
		for _, size := range []int64{0, 1, q, 8 * mib, 8*mib + 1, 20 * mib} {
			if size > mib && testing.Short() {
				continue
			}
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				inBubble(t, nil, func(w *world) {
					content := data(size)
					res, err := call(w, w.uploader(), w.file(content), content)
					if err != nil {
						t.Fatalf("%v\n%s", err, w.trace())
					}
					w.wantObject("obj", content)
					w.wantSaved(0)
					if res.Size != size || res.BytesSent != size || res.Object.CRC32C != checksum.Update(0, content) || res.Resumable || name == "Bytes" && res.ID != "" {
						t.Errorf("Result = %+v", res)
					}
					if one := res.Requests == 1; one != (size <= 8*mib) {
						t.Errorf("%d requests\n%s", res.Requests, w.trace())
					}
				})
			})
		}
	}
}

// TestBytesPreconditions checks that bytes are compared with the preconditions
// before they are sent, and that their content type is detected.
func TestBytesPreconditions(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		up := w.uploader(func(o *upload.Options) { o.DetectContentType = http.DetectContentType })
		onlyNew := spec
		onlyNew.IfGenerationMatch = new(int64)
		for i, want := range []error{nil, session.ErrPrecondition} {
			res, err := up.Bytes(w.t.Context(), []byte("<!DOCTYPE html>"), onlyNew)
			if !errors.Is(err, want) || want == nil && err != nil {
				t.Fatalf("upload %d: %v, want %v", i, err, want)
			}
			if err == nil && !strings.HasPrefix(res.Object.ContentType, "text/html") {
				t.Errorf("content type %q", res.Object.ContentType)
			}
			if err != nil && res.BytesSent != 0 {
				t.Errorf("%d bytes were sent", res.BytesSent)
			}
		}
	})
}
