package fakegcs

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// inflated returns r with a decompressed body. In the JSON API, Content-Encoding:
// gzip compresses the transfer only, as with gcloud storage cp --gzip-in-flight. All
// lengths and offsets then count decompressed bytes. With the parameter
// contentEncoding=gzip, and in the XML API, the object itself is compressed.
// https://github.com/googleapis/storage-testbench/blob/main/testbench/common.py
func inflated(r *http.Request, q *request) *http.Request {
	if q.xml || !strings.EqualFold(r.Header.Get("Content-Encoding"), "gzip") || q.query.Get("contentEncoding") == "gzip" {
		return r
	}
	plain := *r
	plain.Body = &inflater{from: r.Body}
	plain.ContentLength = -1
	return &plain
}

type inflater struct {
	from io.ReadCloser
	gzip *gzip.Reader // nil until the first Read
	err  error
}

func (f *inflater) Read(p []byte) (int, error) {
	if f.gzip == nil && f.err == nil {
		f.gzip, f.err = gzip.NewReader(f.from) // io.EOF: there is no body
	}
	if f.err != nil {
		return 0, f.err
	}
	return f.gzip.Read(p)
}

func (f *inflater) Close() error { return f.from.Close() }
