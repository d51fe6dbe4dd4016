package upload_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"gcsup/session"
)

// The temporary object of a part has other bytes, and neither the service nor a request
// noticed. The next call sends the part again.
func TestPartsWrongTemporaryObject(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(partsLarge)
		path := w.file(content)
		plain := w.http.Transport
		damaged := false
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			w.mu.Lock()
			first := req.Method == http.MethodPut && req.Header.Get("X-Goog-Hash") != "" && req.ContentLength > 0 && !damaged
			damaged = damaged || first
			w.mu.Unlock()
			if first {
				body, err := io.ReadAll(req.Body)
				if err != nil {
					return nil, err
				}
				body[0] ^= 1
				req = req.Clone(req.Context())
				req.Header.Del("X-Goog-Hash")
				req.Body = io.NopCloser(bytes.NewReader(body))
			}
			return plain.RoundTrip(req)
		})}
		_, err := w.uploader(byParts).File(w.t.Context(), path, spec)
		if !errors.Is(err, session.ErrUnexpectedData) || !strings.Contains(err.Error(), "has crc32c ") {
			t.Fatal(err)
		}
		w.http = &http.Client{Transport: plain}
		if _, err := w.uploader(byParts).File(w.t.Context(), path, spec); err != nil {
			t.Fatal(err)
		}
		w.wantOnlyObject(content)
	})
}
