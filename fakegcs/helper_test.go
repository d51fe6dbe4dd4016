package fakegcs_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/fakegcstest"
	"gcsup/fakegcs/faults"
)

// q is the unit in which uploads are committed.
const q = 256 << 10

// world is a server with one bucket, and a client that follows no redirects.
type world struct {
	*testing.T
	gcs    *fakegcs.Server
	url    string
	client *http.Client
	ctx    context.Context // of requests, or nil
}

func newWorld(t *testing.T, opts *fakegcs.Options) *world {
	t.Helper()
	srv := fakegcs.NewServer(t, opts)
	_ = srv.CreateBucket(fakegcs.Bucket{Name: "bkt"}) // fails if the directory has it already
	return &world{T: t, gcs: srv.Server, url: srv.URL, client: plainClient}
}

type answer struct {
	*http.Response
	body string
}

var plainClient = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// chunked is a header for a request without a Content-Length.
const chunked = "Transfer-Encoding: chunked"

// try sends one request. Headers are "Name: value" or empty; target is a path or URL.
func (w *world) try(method, target string, body []byte, headers ...string) (answer, error) {
	w.Helper()
	if strings.HasPrefix(target, "/") {
		target = w.url + target
	}
	req, err := http.NewRequest(method, target, bytes.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch h {
		case "":
		case chunked:
			req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), -1
		default:
			req.Header.Add(name, value)
		}
	}
	if w.ctx != nil {
		req = req.WithContext(w.ctx)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return answer{resp, string(data)}, err
}

func (w *world) do(method, target string, body []byte, headers ...string) answer {
	w.Helper()
	a, err := w.try(method, target, body, headers...)
	if err != nil {
		w.Fatalf("%s %s: %v", method, target, err)
	}
	return a
}

// want sends one request, and fails unless the reply has the status, and text in its body.
// The body must not have a text after "!".
func (w *world) want(status int, text, method, target string, body []byte, headers ...string) answer {
	w.Helper()
	a := w.do(method, target, body, headers...)
	unwanted, not := strings.CutPrefix(text, "!")
	if a.StatusCode != status || not == strings.Contains(a.body, unwanted) {
		w.Errorf("%s %.99s %.99q %.99q = %d %.300s, want %d %q", method, target, headers, body, a.StatusCode, a.body, status, text)
	}
	return a
}

// chunk sends a chunk, and fails unless the reply has the status.
func (w *world) chunk(status int, uri string, from, to int, total string) answer {
	w.Helper()
	return w.want(status, "", "PUT", uri, data(to)[from:], chunkRange(from, to, total))
}

// holds fails unless the object has the content.
func (w *world) holds(name string, content []byte) {
	w.Helper()
	if got, err := w.gcs.ReadObject("bkt", name); err != nil || !bytes.Equal(got, content) {
		w.Errorf("%s has %d bytes, %v, want %d", name, len(got), err, len(content))
	}
}

func (w *world) addFaults(list ...faults.Fault) {
	w.Helper()
	if err := w.gcs.AddFaults(list...); err != nil {
		w.Fatal(err)
	}
}

func (w *world) createBucket(b fakegcs.Bucket) {
	w.Helper()
	if err := w.gcs.CreateBucket(b); err != nil {
		w.Fatal(err)
	}
}

// moved returns a session URI of an earlier server on the same directory for this one.
func (w *world) moved(uri string) string { return w.url + uri[strings.Index(uri, "/upload"):] }

// start starts a resumable upload and returns its session URI.
func (w *world) start(name string, headers ...string) string {
	w.Helper()
	a := w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name="+url.QueryEscape(name), nil, headers...)
	if a.StatusCode != 200 || a.body != "" || a.Header.Get("Location") == "" || a.Header.Get("X-GUploader-UploadID") == "" {
		w.Fatalf("start = %d %q %v", a.StatusCode, a.body, a.Header)
	}
	return a.Header.Get("Location")
}

// data returns the first n bytes of fakegcstest.Content. Callers must not change
// them.
func data(n int) []byte { return content()[:n:n] }

var content = sync.OnceValue(func() []byte { return fakegcstest.Content(64 * q) })

func (a answer) json(t testing.TB) map[string]any {
	t.Helper()
	m := map[string]any{}
	if err := json.Unmarshal([]byte(a.body), &m); err != nil {
		t.Fatalf("body %q: %v", a.body, err)
	}
	return m
}

// crc returns the crc32c of p in the format of the API.
func crc(p []byte) string {
	sum := crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

func escape(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "+", "%20") }

func asList(v any) []any { l, _ := v.([]any); return l }
