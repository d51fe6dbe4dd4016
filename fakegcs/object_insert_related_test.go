package fakegcs

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gcsup/internal/require"
)

// relatedInsert is the reply of gcs to a multipart upload with a body. It leaves out what
// differs between two uploads.
func relatedInsert(t testing.TB, gcs *Server, boundary string, body io.Reader, length int64) string {
	t.Helper()
	r, err := http.NewRequest("POST", "http://localhost/upload/storage/v1/b/bkt/o?uploadType=multipart&name=x", io.NopCloser(body))
	require.NoError(t, err)
	r.ContentLength = length
	r.Header.Set("Content-Type", "multipart/related; boundary=\""+boundary+"\"")
	w := httptest.NewRecorder()
	gcs.ServeHTTP(w, r)
	var fields map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &fields); err != nil {
		return fmt.Sprintf("%d %q", w.Code, w.Body)
	}
	for _, name := range []string{"id", "mediaLink", "generation", "etag", "timeCreated", "updated", "timeFinalized", "timeStorageClassUpdated"} {
		delete(fields, name)
	}
	return fmt.Sprint(w.Code, fields)
}

func newRelatedServer(t testing.TB) *Server {
	t.Helper()
	gcs, err := New(&Options{Buckets: []Bucket{{Name: "bkt"}}, KeepRequests: -1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = gcs.Close() })
	return gcs
}

const relatedBody = "--b\r\nContent-Type: application/json\r\n\r\n{\"name\":\"x\"}\r\n--b\r\nContent-Type: text/plain\r\n\r\nmedia\r\n--b--\r\n"

// cutReader ends like the body of a connection that broke.
type cutReader struct{ r io.Reader }

func (c cutReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// A multipart upload that ends early makes no object. Only the line break after the last
// delimiter can be missing, if the client announced the body without it.
func TestRelatedCutShort(t *testing.T) {
	gcs := newRelatedServer(t)
	for n := range relatedBody {
		announced := strings.HasPrefix(relatedInsert(t, gcs, "b", strings.NewReader(relatedBody[:n]), int64(n)), "200")
		if want := n == len(relatedBody)-len("\r\n"); announced != want {
			t.Errorf("the body ends with %q as announced: accepted = %v, want %v", relatedBody[:n], announced, want)
		}
		if got := relatedInsert(t, gcs, "b", cutReader{strings.NewReader(relatedBody[:n])}, int64(len(relatedBody))); !strings.HasPrefix(got, "400") {
			t.Errorf("the body breaks off after %q: %s", relatedBody[:n], got)
		}
	}
}
