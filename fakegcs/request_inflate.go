package fakegcs

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// inflated returns r with a body that isn't compressed. A request of the JSON API
// may have Content-Encoding: gzip for the way only, as those of gcloud storage cp
// --gzip-in-flight have: the lengths and offsets that it speaks of, and the
// object, are those of the bytes inside. With the parameter contentEncoding=gzip,
// and in the XML API, the object is to be compressed.
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
