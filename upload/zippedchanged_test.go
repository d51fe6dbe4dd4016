package upload_test

import (
	"errors"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"gcsup/session"
	"gcsup/upload"
)

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
				var once sync.Once
				plain := w.http.Transport
				w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
					once.Do(func() {
						if err := errors.Join(editQuietly(path, 100), os.Chtimes(path, time.Time{}, time.Unix(1e9, 0))); err != nil {
							t.Error(err)
						}
					})
					return plain.RoundTrip(req)
				})}
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
