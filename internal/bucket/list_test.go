package bucket_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"gcsup/internal/bucket"
	"gcsup/internal/require"
	"gcsup/session"
)

// roundTrip is a function that implements http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// newClient returns a client that gets its replies from f.
func newClient(t testing.TB, f roundTrip) *session.Client {
	t.Helper()
	c, err := session.NewClient(&http.Client{Transport: f}, "")
	require.NoError(t, err)
	return c
}

// listing is a client whose replies to List have this body.
func listing(t testing.TB, status int, body string, requested *url.URL) *session.Client {
	return newClient(t, func(r *http.Request) (*http.Response, error) {
		if requested != nil {
			*requested = *r.URL
		}
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
	})
}

func TestList(t *testing.T) {
	body := `{
  "kind": "storage#objects",
  "nextPageToken": "Q2c=",
  "items": [
    {"name": "a/\u003cb\u003e \"ü\"", "size": "9007199254740993", "generation": "1700000000000001", "crc32c": "yZRlqg==",
     "metadata": {"goog-reserved-file-mtime": "1700000000", "other": "x"}},
    {"name": "b", "size": 0, "generation": 2},
    {"name": "c", "size": "1", "metadata": {"goog-reserved-file-mtime": "yesterday"}},
    {"name": "d", "size": "23", "contentEncoding": "gzip", "metadata": {"gcsup-uncompressed-size": "0"}},
    {"name": "e", "size": "23", "contentEncoding": "gzip"},
    {"name": "f", "size": "23", "metadata": {"gcsup-uncompressed-size": "5"}},
    {"name": "g", "size": "23", "contentEncoding": "gzip", "metadata": {"gcsup-uncompressed-size": "-5"}}
  ]
}`
	var u url.URL
	page, r := bucket.List(t.Context(), listing(t, 200, body, &u), bucket.Query{
		Bucket: "my_bucket", Prefix: "a/ü", StartOffset: "a/ü&", PageToken: "Q2c=", MaxResults: 5, UserProject: "payer",
	})
	if r.Op != bucket.OpList || r.Status != 200 || r.Err != nil {
		t.Fatalf("reply %+v", r)
	}
	want := &bucket.Page{NextPageToken: "Q2c=", Objects: []session.Object{
		{Bucket: "my_bucket", Name: `a/<b> "ü"`, Size: 9007199254740993, Generation: 1700000000000001, CRC32C: 0xc99465aa, HasCRC32C: true, FileModTime: time.Unix(1700000000, 0)},
		{Bucket: "my_bucket", Name: "b", Generation: 2},
		{Bucket: "my_bucket", Name: "c", Size: 1},
		{Bucket: "my_bucket", Name: "d", Size: 23, Gzip: true},
		{Bucket: "my_bucket", Name: "e", Size: 23},
		{Bucket: "my_bucket", Name: "f", Size: 23},
		{Bucket: "my_bucket", Name: "g", Size: 23},
	}}
	if !reflect.DeepEqual(page, want) {
		t.Errorf("page %+v, want %+v", page, want)
	}
	if got, want := u.Path, "/storage/v1/b/my_bucket/o"; got != want {
		t.Errorf("path %s, want %s", got, want)
	}
	if got, want := u.Query(), (url.Values{
		"fields": {"items(name,size,crc32c,generation,timeCreated,contentEncoding,metadata/goog-reserved-file-mtime,metadata/gcsup-uncompressed-size),nextPageToken"}, "maxResults": {"5"},
		"pageToken": {"Q2c="}, "prefix": {"a/ü"}, "startOffset": {"a/ü&"}, "userProject": {"payer"},
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("query %v, want %v", got, want)
	}
	page, _ = bucket.List(t.Context(), listing(t, 200, `{"kind":"storage#objects"}`, &u), bucket.Query{Bucket: "bkt"})
	if page == nil || len(page.Objects) != 0 || page.NextPageToken != "" || u.Query().Get("maxResults") != "1000" || u.Query().Has("prefix") {
		t.Errorf("an empty bucket: %+v, %s", page, u.RawQuery)
	}
}

// TestListFailures checks which replies are worth another request.
func TestListFailures(t *testing.T) {
	for _, test := range []struct {
		name, body string
		status     int
		retry      bool
	}{
		{"cut in a string", `{"items":[{"name":"a`, 200, true},
		{"cut between items", `{"items":[{"name":"a","size":"1"},`, 200, true},
		{"no body", ``, 200, true},
		{"login page", `<html>log in</html>`, 200, false},
		{"no name", `{"items":[{"size":"1"}]}`, 200, false},
		{"bad size", `{"items":[{"name":"a","size":"many"}]}`, 200, false},
		{"no bucket", `{"error":{"code":404,"message":"The specified bucket does not exist."}}`, 404, false},
		{"forbidden", `{"error":{"code":403,"message":"no"}}`, 403, false},
		{"too many", `{"error":{"code":429,"message":"slow down"}}`, 429, true},
		{"unavailable", ``, 503, true},
	} {
		page, r := bucket.List(t.Context(), listing(t, test.status, test.body, nil), bucket.Query{Bucket: "bkt"})
		if page != nil || r.Retryable() != test.retry {
			t.Errorf("%s: page %v, Retryable %v, want %v: %+v", test.name, page, r.Retryable(), test.retry, r)
		}
		if !test.retry && r.Refusal().Kind == nil {
			t.Errorf("%s: the refusal has no kind", test.name)
		}
	}
}

// readFunc is a function that implements io.Reader.
type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestListCanceledInTheReply(t *testing.T) {
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	c := newClient(t, func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(readFunc(func([]byte) (int, error) {
			cancel(stop)
			return 0, r.Context().Err()
		}))}, nil
	})
	page, r := bucket.List(ctx, c, bucket.Query{Bucket: "bkt"})
	if page != nil || r.Status != 0 || !errors.Is(r.Err, stop) {
		t.Errorf("page %v, reply %+v", page, r)
	}
}

// pageBody is the body of a page as the service sends it.
func pageBody() string {
	var b bytes.Buffer
	b.WriteString("{\n  \"nextPageToken\": \"CgtkaXIvZmlsZS05OQ==\",\n  \"items\": [")
	for i := range bucket.PageMax {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n    {\n      \"name\": \"backup/2026/11/directory/file-%06d.dat\",\n      \"generation\": \"1763769254%06d\",\n      \"size\": \"16384\",\n      \"crc32c\": \"yZRlqg==\",\n      \"metadata\": {\n        \"goog-reserved-file-mtime\": \"1763769254\"\n      }\n    }", i, i)
	}
	b.WriteString("\n  ]\n}\n")
	return b.String()
}

func BenchmarkListPage(b *testing.B) {
	body := pageBody()
	c := listing(b, 200, body, nil)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		page, r := bucket.List(b.Context(), c, bucket.Query{Bucket: "bkt"})
		if r.Err != nil {
			b.Fatal(r.Err)
		}
		n += len(page.Objects)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/object")
}

func FuzzListPage(f *testing.F) {
	f.Add(`{"items":[{"name":"a","size":"1","generation":"2","crc32c":"AAAAAA=="}],"nextPageToken":"x"}`)
	f.Add(strings.Replace(pageBody()[:600], "16384", "-1", 1))
	f.Fuzz(func(t *testing.T, body string) {
		page, r := bucket.List(t.Context(), listing(t, 200, body, nil), bucket.Query{Bucket: "bkt"})
		if (page == nil) == (r.Err == nil) {
			t.Fatalf("page %v, error %v", page, r.Err)
		}
		if page == nil {
			return
		}
		for _, o := range page.Objects {
			if o.Name == "" || o.Size < 0 {
				t.Errorf("object %+v", o)
			}
		}
	})
}
