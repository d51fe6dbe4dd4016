package fakegcs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzParseRelated checks that parseRelated finds the parts that package mime/multipart
// finds, or none.
func FuzzParseRelated(f *testing.F) {
	for _, seed := range []string{
		"--b\r\nContent-Type: application/json\r\n\r\n{}\r\n--b\r\nContent-Type: text/plain; charset=\"x\"\r\n\r\nmedia\r\n--b--\r\n",
		"--b\r\n\r\n\r\n--b\r\n\r\n\r\n--b--",
		"--b\r\n\r\n--b\r\n\r\n--b--",
		"--b\r\nA: b\r\nContent-Type:\r\ncontent-type: x\r\n\r\n{}\r\n--b\r\nX : y\r\n\r\nz\r\n--b--\r\n",
		"--b\r\n\r\n{}\r\n--b\r\n\r\nx\r\n--bc\r\ny\r\n--b--",
		"--b\r\n\r\n{}\r\n--b\r\n\r\nx\r\n--b\r\n\r\n{}\r\n--b--",
		"--b\n\n{}\n--b\n\nx\n--b--",
		"\r\n--b\r\n\r\n{}\r\n--b \r\n\r\nx\r\n--b--  ",
		"--b\r\n A: b\r\n\r\n{}\r\n--b\r\n\r\nx\r\n--b--",
		"--b\r\n\r\n{}\r\n--b\r\n\r\nx\r\n--b--epilogue",
		"--b\r\n\r\n{}\r\n--b--\r\n", "--b--", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ok := parseRelated(body, "b")
		if !ok {
			return
		}
		parts := multipart.NewReader(bytes.NewReader(body), "b")
		next := func() (string, []byte) {
			p, err := parts.NextRawPart()
			if err != nil {
				t.Fatalf("%q: %v", body, err)
			}
			content, err := io.ReadAll(p)
			if err != nil {
				t.Fatalf("%q: %v", body, err)
			}
			return p.Header.Get("Content-Type"), content
		}
		_, metadata := next()
		kind, media := next()
		if !bytes.Equal(got.metadata, metadata) || got.mediaType != kind || !bytes.Equal(got.media, media) {
			t.Errorf("%q: got %q, want %q, %q, %q", body, got, metadata, kind, media)
		}
		if _, err := parts.NextRawPart(); err != io.EOF {
			t.Errorf("%q: there are more parts: %v", body, err)
		}
	})
}

func TestParseRelatedIsUsed(t *testing.T) {
	p, ok := parseRelated([]byte("--b\r\nContent-Type: application/json\r\n\r\n{}\r\n--b\r\nContent-Type: text/plain\r\n\r\nmedia\r\n--b--\r\n"), "b")
	if !ok || string(p.metadata) != "{}" || p.mediaType != "text/plain" || string(p.media) != "media" {
		t.Errorf("%q, %v", p, ok)
	}
}

// relatedInsert is the reply of gcs to a multipart upload with a body. It leaves out what
// differs between two uploads.
func relatedInsert(t testing.TB, gcs *Server, boundary string, body io.Reader, length int64) string {
	t.Helper()
	r, err := http.NewRequest("POST", "http://localhost/upload/storage/v1/b/bkt/o?uploadType=multipart&name=x", io.NopCloser(body))
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gcs.Close() })
	return gcs
}

const relatedBody = "--b\r\nContent-Type: application/json\r\n\r\n{\"name\":\"x\"}\r\n--b\r\nContent-Type: text/plain\r\n\r\nmedia\r\n--b--\r\n"

// FuzzInsertRelated checks that a multipart upload gets the same reply if its length is
// known, so that readRelated reads it, and if it is not.
func FuzzInsertRelated(f *testing.F) {
	long := strings.Repeat("b", 5000)
	for _, seed := range []struct{ boundary, body string }{
		{"b", relatedBody},
		{"b", strings.Replace(relatedBody, "media", "me\r\n--bdia\r\n--b-\r\n-", 1)},
		{"b", strings.Replace(relatedBody, `{"name":"x"}`, `{"name":"y"}`, 1)},
		{"b", strings.Replace(relatedBody, `{"name":"x"}`, `{"name":"x","crc32c":"AAAAAA=="}`, 1)},
		{"b", strings.Replace(relatedBody, `{"name":"x"}`, `{"name":`, 1)},
		{"b", strings.Replace(relatedBody, "Content-Type: text/plain", strings.Repeat("A: b\r\n", 11000)+"C: d", 1)},
		{"b", relatedBody + "epilogue"},
		{"b", "preamble\r\n" + relatedBody},
		{long, strings.ReplaceAll(relatedBody, "--b", "--"+long)},
		{"b", ""},
	} {
		f.Add(seed.boundary, []byte(seed.body))
	}
	gcs := newRelatedServer(f)
	f.Fuzz(func(t *testing.T, boundary string, body []byte) {
		if strings.ContainsAny(boundary, "\"\r\n") || len(body) > granularity {
			return
		}
		known := relatedInsert(t, gcs, boundary, bytes.NewReader(body), int64(len(body)))
		unknown := relatedInsert(t, gcs, boundary, bytes.NewReader(body), -1)
		if known != unknown {
			t.Errorf("boundary %q, body %q:\nwith its length %s\nwithout it     %s", boundary, body, known, unknown)
		}
	})
}

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
