package fakegcs_test

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// TestBoundaries uploads in every way, with sizes around multiples of 256 KiB, to
// every kind of server.
func TestBoundaries(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	ways := map[string]func(w *world, name string, p []byte) answer{
		"one request": func(w *world, name string, p []byte) answer { return w.do("PUT", w.start(name), p) },
		"chunks and tail": func(w *world, name string, p []byte) answer {
			uri, at := w.start(name), 0
			for ; len(p)-at > q; at += q {
				w.chunk(308, uri, at, at+q, "*")
			}
			if len(p) == 0 {
				return w.do("PUT", uri, nil, "Content-Range: bytes */0")
			}
			return w.chunk(200, uri, at, len(p), fmt.Sprint(len(p)))
		},
		"cut and resumed": func(w *world, name string, p []byte) answer {
			uri := w.start(name)
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: int64(len(p) * 3 / 4)}})
			if _, err := w.try("PUT", uri, p); err == nil {
				w.Fatal("the request was not cut")
			}
			last := -1
			fmt.Sscanf(w.committed(uri), "bytes=0-%d", &last)
			if want := len(p)*3/4/q*q - 1; last != want {
				w.Errorf("size %d: committed to %d, want %d", len(p), last, want)
			}
			if len(p) == 0 {
				return w.do("PUT", uri, nil)
			}
			return w.chunk(200, uri, last+1, len(p), fmt.Sprint(len(p)))
		},
		"media": func(w *world, name string, p []byte) answer {
			return w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name="+name, p)
		},
		"multipart": func(w *world, name string, p []byte) answer {
			body := "--b\r\nContent-Type: application/json\r\n\r\n{\"name\":\"" + name + "\",\"crc32c\":\"" + crc(p) + "\"}\r\n--b\r\n\r\n" + string(p) + "\r\n--b--"
			return w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart", []byte(body), "Content-Type: multipart/related; boundary=b")
		},
		"multipart with trailer": func(w *world, name string, p []byte) answer {
			body := "--b\r\n\r\n{\"name\":\"" + name + "\"}\r\n--b\r\n\r\n" + string(p) + "\r\n--b\r\n\r\n{\"crc32c\":\"" + crc(p) + "\"}\r\n--b--"
			return w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart", []byte(body), "Content-Type: multipart/related; boundary=b")
		},
		"xml": func(w *world, name string, p []byte) answer { return w.do("PUT", "/bkt/"+name, p) },
	}
	for _, mode := range []string{"memory", "directory", "discard"} {
		t.Run(mode, func(t *testing.T) {
			opts := &fakegcs.Options{Discard: mode == "discard"}
			if mode == "directory" {
				opts.Dir = t.TempDir()
			}
			w := newWorld(t, opts)
			for way, upload := range ways {
				for _, size := range []int{0, 1, q - 1, q, q + 1, 2 * q} {
					name := strings.ReplaceAll(fmt.Sprint(way, size), " ", "-")
					p := data(size)
					if a := upload(w, name, p); a.StatusCode != 200 {
						t.Errorf("%s, size %d: %d %s", way, size, a.StatusCode, a.body)
						continue
					}
					sum := md5.Sum(p)
					if o, ok := w.gcs.Object("bkt", name); !ok || o.Size != int64(size) || o.CRC32C.String() != crc(p) || !bytes.Equal(o.MD5, sum[:]) {
						t.Errorf("%s, size %d: %+v", way, size, o)
					}
					if mode == "discard" {
						continue
					}
					w.holds(name, p)
				}
			}
		})
	}
}

// An insert whose body was cut off makes no object.
func TestCutInserts(t *testing.T) {
	w := newWorld(t, &fakegcs.Options{Faults: []faults.Fault{{Match: faults.Match{Op: faults.OpInsert}, Times: -1, Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: q + 1}}}})
	for target, method := range map[string]string{"/upload/storage/v1/b/bkt/o?uploadType=media&name=x": "POST", "/bkt/x": "PUT"} {
		if _, err := w.try(method, target, data(2*q)); err == nil {
			t.Errorf("%s got a reply", target)
		}
	}
	w.gcs.ClearFaults()
	unfinished := "--b\r\n\r\n{\"name\":\"x\"}\r\n--b\r\n\r\nhello"
	w.want(400, "", "POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart", []byte(unfinished), "Content-Type: multipart/related; boundary=b")
	if _, ok := w.gcs.Object("bkt", "x"); ok {
		t.Error("the object exists")
	}
}

// TestKnobs checks the options that have no other test.
func TestKnobs(t *testing.T) {
	w := newWorld(t, &fakegcs.Options{Query308: true, CreateBuckets: true})
	uri := w.start("x", "X-Forwarded-Proto: https")
	if !strings.HasPrefix(uri, "https://") {
		t.Errorf("behind a TLS proxy the session URI is %s", uri)
	}
	uri = "http" + strings.TrimPrefix(uri, "https")
	a := w.do("PUT", uri, data(q), chunkRange(0, q, "*"), "X-GUploader-No-308: yes")
	if a.StatusCode != 200 || a.Header.Get("x-goog-running-hash") != "crc32c="+crc(data(q)) {
		t.Errorf("chunk: %d %v", a.StatusCode, a.Header)
	}
	a = w.do("PUT", uri, nil, "Content-Range: bytes */*", "X-GUploader-No-308: yes")
	if a.StatusCode != 308 || a.Header.Get("x-goog-running-hash") != "crc32c="+crc(data(q)) {
		t.Errorf("query: %d %v", a.StatusCode, a.Header)
	}
	w.want(200, "", "POST", "/upload/storage/v1/b/another/o?uploadType=media&name=x", nil)
	w.want(400, "", "POST", "/upload/storage/v1/b/NOT_VALID/o?uploadType=media&name=x", nil)
}

// TestRefusals checks the status and the error of invalid requests.
func TestRefusals(t *testing.T) {
	w := newWorld(t, nil)
	w.insert("a", "a")
	key := "x-goog-encryption-algorithm: AES256"
	for _, test := range []struct {
		method, path, body string
		headers            []string
		status             int
		has                string
	}{
		{"POST", "/storage/v1/b", `{`, nil, 400, "invalid"},
		{"DELETE", "/storage/v1/b/bkt", "", nil, 409, "not empty"},
		{"DELETE", "/storage/v1/b/nothing", "", nil, 404, "notFound"},
		{"GET", "/storage/v1/b/bkt?ifMetagenerationNotMatch=1", "", nil, 304, ""},
		{"GET", "/storage/v1/b/bkt/o/a?generation=-1", "", nil, 400, "generation"},
		{"GET", "/storage/v1/b/bkt/o/b", "", nil, 404, "No such object: bkt/b"},
		{"GET", "/bkt/b", "", nil, 404, "<Code>NoSuchKey</Code>"},
		{"GET", "/nothing", "", nil, 404, "<Code>NoSuchBucket</Code>"},
		{"PUT", "/bkt/b", "x", []string{"Content-MD5: nonsense"}, 400, "InvalidArgument"},
		{"PUT", "/bkt/b", "x", []string{"x-goog-if-generation-match: 9"}, 412, "PreconditionFailed"},
		{"PUT", "/bkt/b", "x", []string{key}, 400, "<Code>CustomerEncryptionKeyFormatIsInvalid<"},
		{"PUT", "/bkt", "", nil, 409, "<Code>BucketAlreadyOwnedByYou<"},
		{"PUT", "/Not_Valid", "", nil, 400, "<Code>InvalidBucketName<"},
		{"DELETE", "/bkt", "", nil, 409, "<Code>BucketNotEmpty<"},
		{"POST", "/storage/v1/b/bkt/o/a/fly", "", nil, 400, "does not implement"},
		{"POST", "/upload/storage/v1/b/bkt/o?name=x", "", nil, 400, `"reason": "wrongUrlForUpload"`},
		{"POST", "/storage/v1/b/bkt/o?name=x", "x", nil, 400, "Upload requests must include an uploadType URL parameter and a URL path beginning with /upload/"},
		{"POST", "/storage/v1/b/bkt/o?name=x&uploadType=media", "x", nil, 400, `"reason": "wrongUrlForUpload"`},
		{"POST", "/storage/v1/b/bkt/o/a", "x", nil, 405, ""},
		{"POST", "/upload/storage/v1/b/bkt/o?name=x&uploadType=tea", "", nil, 400, "tea"},
		{"POST", "/upload/storage/v1/b/bkt/o?name=x&upload_id=y", "", nil, 405, ""},
		{"POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=.well-known/acme-challenge/x", "", nil, 400, "not valid"},
		{"POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=x", "", []string{"X-Upload-Content-Length: many"}, 400, "X-Upload-Content-Length"},
		{"POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart&name=x", "--b", []string{"Content-Type: multipart/related; boundary=b"}, 400, "Malformed multipart"},
		{"POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart&name=x", "", []string{"Content-Type: text/plain"}, 400, "Unsupported content"},
		{"GET", "/storage/v1/nonsense", "", nil, 404, ""},
		{"POST", "/storage/v1/b/bkt/o/a", `{"contentType":"text/x"}`, []string{"X-HTTP-Method-Override: PATCH"}, 200, `"contentType": "text/x"`},
		{"PUT", "/storage/v1/b/bkt/o/a", `{"contentType":"text/y"}`, []string{"X-HTTP-Method-Override: DELETE"}, 200, `"contentType": "text/y"`},
		{"GET", "/storage/v1/b/bkt/o?filter=x", "", nil, 400, "filter"},
		{"POST", "/storage/v1/b", `{"name":"other","storageClass":"LUKEWARM"}`, nil, 400, `"message": "Invalid storage class"`},
		{"GET", "/storage/v1/b/other", "", nil, 404, ""},
		{"PATCH", "/storage/v1/b/bkt", `{"storageClass":"LUKEWARM"}`, nil, 400, `"reason": "invalid"`},
		{"POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=x", `{"storageClass":"LUKEWARM"}`, []string{"Content-Type: application/json"}, 400, "Invalid storage class"},
		{"POST", "/bkt/x", "", []string{"x-goog-resumable: start", "x-goog-storage-class: LUKEWARM"}, 400, "Invalid storage class"},
		{"PUT", "/bkt/x", "x", []string{"x-goog-storage-class: LUKEWARM"}, 400, "Invalid storage class"},
		{"POST", "/storage/v1/b/bkt/o/a/rewriteTo/b/bkt/o/b", `{"storageClass":"LUKEWARM"}`, nil, 400, "Invalid storage class"},
		{"POST", "/storage/v1/b/bkt/o/b/compose", `{"sourceObjects":[{"name":"a"}],"destination":{"storageClass":"LUKEWARM"}}`, nil, 400, "Invalid storage class"},
		{"POST", "/storage/v1/b/bkt/o/a/rewriteTo/b/bkt/o/c", `{"storageClass":"nearline"}`, nil, 200, `"storageClass": "NEARLINE"`},
	} {
		w.want(test.status, test.has, test.method, test.path, []byte(test.body), test.headers...)
	}
}

// A session never has more bytes than the object's size, even if a request has, and
// can be finished afterwards.
func TestBodyBeyondTotal(t *testing.T) {
	for _, test := range []struct {
		name, start, contentRange, chunked string // headers
	}{
		{"open range", "", "Content-Range: bytes 0-*/10", ""},
		{"open range, chunked", "", "Content-Range: bytes 0-*/10", chunked},
		{"closed range, chunked", "", "Content-Range: bytes 0-9/10", chunked},
		{"no range, chunked", "X-Upload-Content-Length: 10", "", chunked},
		{"open range without total", "X-Upload-Content-Length: 10", "Content-Range: bytes 0-*/*", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, nil)
			uri := w.start("x", test.start)
			w.want(400, "", "PUT", uri, data(20), test.contentRange, test.chunked)
			if got := w.committed(uri); got != "" && got != "bytes=0-9" {
				t.Errorf("committed %q, want at most 10 bytes", got)
			}
			w.want(200, `"size": "10"`, "PUT", uri, data(10), "Content-Range: bytes 0-9/10")
		})
	}
}

// A total that differs from an earlier one is refused, and the upload can be finished
// with the first total. No source describes the behavior of the service. Therefore
// package fakegcstest has no such case.
func TestTotalCannotChange(t *testing.T) {
	w := newWorld(t, nil)
	uri := w.start("x")
	w.chunk(308, uri, 0, q, "524288")
	for _, total := range []string{"786432", "262145"} {
		if a := w.do("PUT", uri, data(q), "Content-Range: bytes 262144-524287/"+total); a.StatusCode != 400 || a.Header.Get("X-GUploader-UploadID") == "" {
			t.Errorf("a total of %s: %d %s", total, a.StatusCode, a.body)
		}
		if got := w.committed(uri); got != "bytes=0-262143" {
			t.Errorf("after a total of %s: committed %q", total, got)
		}
	}
	w.chunk(200, uri, q, 2*q, "524288")
}

// The checksums of the first and of the last request must both match.
func TestChecksumsOfBothRequests(t *testing.T) {
	good, bad := crc(data(9)), crc(data(8))
	for _, test := range []struct {
		first, last string
		status      int
	}{{good, good, 200}, {bad, good, 400}, {good, bad, 400}} {
		w := newWorld(t, nil)
		a := w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=x", []byte(`{"crc32c":"`+test.first+`"}`), "Content-Type: application/json")
		w.want(test.status, "", "PUT", a.Header.Get("Location"), data(9), "X-Goog-Hash: crc32c="+test.last)
	}
}

// All checksums of a multipart upload must match. Its last part can have one too.
func TestChecksumsOfMultipart(t *testing.T) {
	good, bad := crc(data(9)), crc(data(8))
	for _, test := range []struct {
		metadata, end, header string
		status                int
	}{{good, good, good, 200}, {bad, good, good, 400}, {good, bad, good, 400}, {good, good, bad, 400}} {
		w := newWorld(t, nil)
		body := "--sep\r\nContent-Type: application/json\r\n\r\n{\"crc32c\":\"" + test.metadata + "\"}\r\n--sep\r\n\r\n" + string(data(9)) +
			"\r\n--sep\r\n\r\n{\"crc32c\":\"" + test.end + "\"}\r\n--sep--\r\n"
		a := w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart&name=x", []byte(body), "Content-Type: multipart/related; boundary=sep", "X-Goog-Hash: crc32c="+test.header)
		if _, there := w.gcs.Object("bkt", "x"); a.StatusCode != test.status || there != (test.status == 200) {
			t.Errorf("%+v: %d", test, a.StatusCode)
		}
	}
}

// A query needs no Content-Length, but must not have a body.
func TestQueryWithoutLength(t *testing.T) {
	w := newWorld(t, nil)
	uri := w.start("x")
	w.put(uri, 0, q, "*")
	for body, status := range map[string]int{"": 308, "x": 400} {
		w.want(status, "", "PUT", uri, []byte(body), "Content-Range: bytes */*", chunked)
	}
}

// The limit applies to the metadata of the first and the last request together.
func TestMetadataOfBothRequests(t *testing.T) {
	for n, status := range map[int]int{8<<10 - 2: 200, 8<<10 - 1: 400} {
		w := newWorld(t, nil)
		a := w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=x", []byte(`{"metadata":{"a":""}}`), "Content-Type: application/json")
		w.want(status, "", "PUT", a.Header.Get("Location"), data(9), "X-Goog-Meta-B: "+strings.Repeat("x", n))
	}
}

// An object may have 5 TiB, and not one byte more.
func TestTooLarge(t *testing.T) {
	w := newWorld(t, nil)
	const most = 5 << 40
	for _, test := range []struct {
		total  int64
		status int
	}{{most, 308}, {most + 1, 413}} {
		w.chunk(test.status, w.start("x"), 0, q, fmt.Sprint(test.total))
	}
	w.want(413, "", "PUT", w.start("x"), data(q), fmt.Sprintf("Content-Range: bytes %d-%d/*", most, most+q-1))
}

// A failed request for an object's bytes returns the bare message, even in the JSON
// API.
func TestMediaErrors(t *testing.T) {
	w := newWorld(t, nil)
	w.insert("a", "a")
	for _, test := range []struct {
		path, header string
		status       int
		body         string
	}{
		{"/storage/v1/b/bkt/o/b?alt=media", "Range: bytes=0-", 404, "No such object: bkt/b"},
		{"/download/storage/v1/b/bkt/o/b?alt=media", "Accept: */*", 404, "No such object: bkt/b"},
		{"/storage/v1/b/nothing/o/b?alt=media", "Accept: */*", 404, "The specified bucket does not exist."},
		{"/storage/v1/b/bkt/o/a?alt=media", "Range: bytes=9-", 416, "Request range not satisfiable"},
		{"/storage/v1/b/bkt/o/a?alt=media&ifGenerationMatch=1", "Accept: */*", 412, "At least one of the pre-conditions you specified did not hold."},
	} {
		if a := w.do("GET", test.path, nil, test.header); a.StatusCode != test.status || a.body != test.body || a.Header.Get("Content-Type") != "text/html; charset=UTF-8" {
			t.Errorf("%s = %d %s %q, want %d %q", test.path, a.StatusCode, a.Header.Get("Content-Type"), a.body, test.status, test.body)
		}
	}
}
