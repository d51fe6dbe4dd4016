package fakegcstest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
)

// The fuzz targets are in this package because its test binary is small. That of
// package fakegcs links the official library, which takes minutes to instrument.

// FuzzRequest checks that the server replies to any request with a valid status.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][3]string{
		{"GET", "/storage/v1/b/bkt/o/a%2Fb?alt=media", "bytes=0-3"},
		{"PUT", "/upload/storage/v1/b/bkt/o?uploadType=resumable&upload_id=x", "bytes 0-1/2"},
		{"POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart", ""},
		{"POST", "/storage/v1/b/bkt/o/x/rewriteTo/b/bkt/o/y", "bytes */*"},
		{"GET", "/bkt?delimiter=/&prefix=a&max-keys=1", ""},
		{"PUT", "/bkt/o?uploadId=1&partNumber=1", ""},
		{"GET", "/storage/v1/b/bkt/o?fields=items(name,a/b),kind", ""},
		{"POST", "/_fakegcs/faults", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], []byte(`{"name":"x"}`))
	}
	f.Add("POST", "/batch/storage/v1", "sep", []byte("--sep\r\nContent-ID: <1>\r\n\r\nGET /storage/v1/b/bkt/o?fields=items HTTP/1.1\n\n--sep--"))
	gcs, err := fakegcs.New(nil)
	require.NoError(f, err)
	require.NoError(f, gcs.CreateBucket(fakegcs.Bucket{Name: "bkt"}))
	f.Fuzz(func(t *testing.T, method, target, header string, body []byte) {
		serve(t, gcs, method, target, header, body)
	})
}

// serve passes one request to the handler. It skips requests that net/http would
// refuse.
func serve(t testing.TB, h http.Handler, method, target, header string, body []byte) {
	u, err := url.ParseRequestURI(target)
	if err != nil || !strings.HasPrefix(target, "/") {
		return
	}
	req, err := http.NewRequest(method, "http://fake/", bytes.NewReader(body))
	if err != nil {
		return
	}
	req.URL = u
	req.Header.Set("Content-Range", header)
	req.Header.Set("Range", header)
	req.Header.Set("X-Goog-Hash", header)
	req.Header.Set("Content-Type", "multipart/related; boundary="+header)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	if rec.Code < 200 || rec.Code >= 500 && rec.Code != 503 {
		t.Errorf("%s %s (%q) = %d %s", method, target, header, rec.Code, rec.Body)
	}
}

func FuzzParseFaults(f *testing.F) {
	f.Add(`[{"match": {"op": "put"}, "skip": 1, "times": 2, "do": {"effect": "status", "status": 503, "retryAfter": "3"}}]`)
	f.Add(`[{"do": {"effect": "late-commit", "bytes": 3, "for": "1s"}}]`)
	f.Fuzz(func(t *testing.T, plan string) {
		list, err := faults.Parse(strings.NewReader(plan))
		if err != nil {
			return
		}
		text, err := json.Marshal(list)
		require.NoError(t, err)
		if list == nil {
			return
		}
		again, err := faults.Parse(bytes.NewReader(text))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(list) {
			t.Errorf("round trip of %s: %v, %v", text, again, err)
		}
	})
}
