package upload_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload"
)

// TestBytesSizes checks that up to 8 MiB are sent in one request, and that a larger
// upload is not saved.
func TestBytesSizes(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, 1, q, 8 * mib, 8*mib + 1, 20 * mib} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				content := data(size)
				res, err := w.uploader().Bytes(w.t.Context(), content, spec)
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				w.wantObject("obj", content)
				w.wantSaved(0)
				if res.Size != size || res.BytesSent != size || res.Object.CRC32C != checksum.Update(0, content) || res.ID != "" || res.Resumable {
					t.Errorf("Result = %+v", res)
				}
				if one := res.Requests == 1; one != (size <= 8*mib) {
					t.Errorf("%d requests\n%s", res.Requests, w.trace())
				}
			})
		})
	}
}

// TestBytesSurvive checks that bytes are uploaded despite each fault, in one request
// and in a session. A lost session does not matter, because the bytes can be read
// again.
func TestBytesSurvive(t *testing.T) {
	t.Parallel()
	skipShort(t)
	eachFault(t, testsize.Full(1, 2), []point{
		{"one request", faults.Match{Op: faults.OpInsert}, objectFaults},
		{"session", faults.Match{Op: faults.OpPut}, dataFaults},
		{"end", faults.Match{Op: faults.OpFinalize}, slices.Concat(objectFaults, finalFaults)},
	}, func(w *world, at string, _ faults.Action) {
		content := data(8*mib + 7)
		if at == "one request" {
			content = data(q + 7)
		}
		if _, err := w.uploader().Bytes(w.t.Context(), content, spec); err != nil {
			w.t.Fatalf("%v\n%s", err, w.trace())
		}
		w.wantObject("obj", content)
	})
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
