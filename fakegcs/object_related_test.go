package fakegcs

import (
	"bytes"
	"io"
	"mime/multipart"
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
