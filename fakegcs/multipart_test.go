package fakegcs_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"gcsup/fakegcs"
)

func TestMultipartUpload(t *testing.T) {
	t.Parallel()
	const size = 5 << 20 // the minimum size of a part that is not the last
	for _, mode := range []string{"memory", "directory", "no md5"} {
		t.Run(mode, func(t *testing.T) {
			opts := &fakegcs.Options{NoMD5: mode == "no md5"}
			if mode == "directory" {
				opts.Dir = t.TempDir()
			}
			w := newWorld(t, opts)
			initiate := func(name string) string {
				a := w.do("POST", "/bkt/"+name+"?uploads", nil, "Content-Type: text/x", "x-goog-meta-k: v")
				var out struct {
					UploadID string `xml:"UploadId"`
				}
				if err := xml.Unmarshal([]byte(a.body), &out); err != nil || a.StatusCode != 200 || out.UploadID == "" {
					t.Fatalf("initiate: %d %s", a.StatusCode, a.body)
				}
				return "/bkt/" + name + "?uploadId=" + out.UploadID
			}
			put := func(uri string, n int, p []byte) string {
				a := w.do("PUT", fmt.Sprint(uri, "&partNumber=", n), p, "x-goog-hash: crc32c="+crc(p))
				if a.StatusCode != 200 {
					t.Fatalf("part %d: %d %s", n, a.StatusCode, a.body)
				}
				return a.Header.Get("ETag")
			}
			complete := func(uri string, parts ...string) answer {
				return w.do("POST", uri, []byte("<CompleteMultipartUpload>"+strings.Join(parts, "")+"</CompleteMultipartUpload>"))
			}
			part := func(n int, tag string) string {
				return fmt.Sprintf("<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", n, tag)
			}
			uri := initiate("a/b")
			content := data(size + 99)
			put(uri, 1, []byte("replaced"))
			first, last := put(uri, 1, content[:size]), put(uri, 7, content[size:])
			if a := w.do("PUT", uri+"&partNumber=2", []byte("x"), "x-goog-hash: crc32c=AAAAAA=="); a.StatusCode != 400 || !strings.Contains(a.body, "<Code>CrcMismatch<") {
				t.Errorf("part with a wrong hash: %d %s", a.StatusCode, a.body)
			}
			if a := w.do("PUT", uri+"&partNumber=10001", []byte("x")); a.StatusCode != 400 {
				t.Errorf("part 10001: %d", a.StatusCode)
			}
			if mode == "directory" {
				w.gcs.Close()
				w = newWorld(t, opts)
			}
			if a := w.do("GET", uri+"&max-parts=1", nil); strings.Count(a.body, "<Part>") != 1 || !strings.Contains(a.body, "<IsTruncated>true") || !strings.Contains(a.body, fmt.Sprint("<Size>", size)) {
				t.Errorf("list parts: %s", a.body)
			}
			if a := w.do("GET", uri+"&part-number-marker=1", nil); strings.Count(a.body, "<Part>") != 1 || !strings.Contains(a.body, "<PartNumber>7<") {
				t.Errorf("list parts: %s", a.body)
			}
			if a := w.do("GET", "/bkt?uploads", nil); !strings.Contains(a.body, "<Key>a/b</Key>") {
				t.Errorf("list uploads: %s", a.body)
			}
			for _, bad := range []struct {
				code  string
				parts []string
			}{
				{"InvalidPartOrder", []string{part(7, last), part(1, first)}},
				{"InvalidPart", []string{part(1, last)}},
				{"InvalidPart", []string{part(2, first)}},
				{"EntityTooSmall", []string{part(7, last), part(8, put(uri, 8, []byte("x")))}},
				{"MalformedCompleteMultipartUploadRequest", nil},
			} {
				if a := complete(uri, bad.parts...); a.StatusCode != 400 || !strings.Contains(a.body, "<Code>"+bad.code+"<") {
					t.Errorf("%s: %d %s", bad.code, a.StatusCode, a.body)
				}
			}
			if a := complete(uri, part(1, first), part(7, last)); a.StatusCode != 200 || a.Header.Get("x-goog-generation") == "" {
				t.Fatalf("complete: %d %s", a.StatusCode, a.body)
			}
			o, _ := w.gcs.Object("bkt", "a/b")
			if o.CRC32C.String() != crc(content) || o.MD5 != nil || o.ContentType != "text/x" || o.Metadata["k"] != "v" {
				t.Errorf("object: %+v", o)
			}
			if got, err := w.gcs.ReadObject("bkt", "a/b"); err != nil || !bytes.Equal(got, content) {
				t.Errorf("the object has %d bytes, %v", len(got), err)
			}
			before := o.Generation
			o, _ = w.gcs.Object("bkt", "a/b")
			if a := complete(uri, part(1, first)); a.StatusCode != 200 || o.Generation != before || a.Header.Get("X-Goog-Generation") != strconv.FormatInt(before, 10) {
				t.Errorf("second complete: %d, generation %d, before %d", a.StatusCode, o.Generation, before)
			}
			uri = initiate("c")
			put(uri, 1, []byte("x"))
			if a := w.do("DELETE", uri, nil); a.StatusCode != 204 {
				t.Errorf("abort: %d", a.StatusCode)
			}
			if a := w.do("DELETE", uri, nil); a.StatusCode != 204 {
				t.Errorf("second abort: %d %s", a.StatusCode, a.body)
			}
			if a := w.do("GET", uri, nil); a.StatusCode != 404 || !strings.Contains(a.body, "NoSuchUpload") {
				t.Errorf("GET after abort: %d %s", a.StatusCode, a.body)
			}
		})
	}
}
