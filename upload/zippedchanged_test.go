package upload_test

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/session"
	"gcsup/upload"
)

// editBefore edits byte 100 of a file, and changes its time, before the first request that is the one.
func (w *world) editBefore(path string, is func(*http.Request) bool) {
	var once sync.Once
	plain := w.http.Transport
	w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		if is(req) {
			once.Do(func() {
				if err := errors.Join(editQuietly(path, 100), os.Chtimes(path, time.Time{}, time.Unix(1e9, 0))); err != nil {
					w.t.Error(err)
				}
			})
		}
		return plain.RoundTrip(req)
	})}
}

// TestGzipChangesWhileResumed changes a file after a resume has recognized it, and before it is compressed again. The
// error is not that of another compressor, and what the service has stays.
func TestGzipChangesWhileResumed(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for name, test := range map[string]struct {
		content   []byte
		interrupt func(w *world, path string)
		with      func(*upload.Options)
	}{
		"session": {text(6 * q), func(w *world, path string) { w.interruptZipped(path, 2*q+5, zippedParts) }, zippedParts},
		"parts":   {data(zippedLarge), func(w *world, path string) { w.interruptZippedParts(path) }, streamParts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubbleWithMD5(t, slowly, func(w *world) {
				path := w.file(test.content)
				test.interrupt(w, path)
				stored := w.storedParts()
				w.editBefore(path, func(*http.Request) bool { return true })
				res, err := w.uploader(test.with).File(w.t.Context(), path, zipped)
				if !errors.Is(err, session.ErrSourceChanged) || !res.Resumable || w.saw(upload.Discarded) != 0 {
					t.Errorf("%+v, %v, %d discarded\n%s", res, err, w.saw(upload.Discarded), w.trace())
				}
				if n := w.storedParts(); n < stored {
					t.Errorf("the service had parts of %d bytes, and has %d", stored, n)
				}
				w.wantSaved(1)
			})
		})
	}
}

// TestZippedInPartsChangesLast changes a file after all of it was compressed, while its last part is sent. No object is
// made of it, also by a resume. One whose change is accepted is sent again.
func TestZippedInPartsChangesLast(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubbleWithMD5(t, slowly, func(w *world) {
		content := data(zippedLarge)
		path := w.file(content)
		w.editBefore(path, func(req *http.Request) bool { return req.URL.Query().Get("partNumber") == "5" })
		for range 2 {
			res, err := w.uploader(streamParts).File(w.t.Context(), path, zipped)
			if !errors.Is(err, session.ErrSourceChanged) || res.Object != nil || !res.Resumable {
				t.Errorf("%+v, %v\n%s", res, err, w.trace())
			}
			w.wantNoObject("obj")
			w.wantSaved(1)
		}
		if n := strings.Count(w.operations(), "parts-put"); n != 5 {
			t.Errorf("%d parts were sent", n)
		}
		w.done(w.uploader(streamParts, func(o *upload.Options) { o.RestartChanged = true }).File(w.t.Context(), path, zipped))
		w.wantZipped(flipped(content, 100))
	})
}
