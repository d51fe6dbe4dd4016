package fakegcs_test

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"strings"
	"testing"

	"gcsup/fakegcs"
)

// Every way to upload, at every size where the quantum makes a difference, into
// every kind of server.
func TestBoundaries(t *testing.T) {
	ways := map[string]func(w *world, name string, p []byte) answer{
		"one request": func(w *world, name string, p []byte) answer { return w.do("PUT", w.start(name), p) },
		"chunks and tail": func(w *world, name string, p []byte) answer {
			uri, at := w.start(name), 0
			for ; len(p)-at > q; at += q {
				if a, err := w.put(uri, at, at+q, "*"); err != nil || a.StatusCode != 308 {
					w.Fatalf("%v %v", a, err)
				}
			}
			if len(p) == 0 {
				return w.do("PUT", uri, nil, "Content-Range: bytes */0")
			}
			a, err := w.put(uri, at, len(p), fmt.Sprint(len(p)))
			if err != nil {
				w.Fatal(err)
			}
			return a
		},
		"cut and resumed": func(w *world, name string, p []byte) answer {
			uri := w.start(name)
			if err := w.gcs.AddFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpFinalize}, Do: fakegcs.Action{Effect: fakegcs.EffectCutRequest, Bytes: int64(len(p) * 3 / 4)}}); err != nil {
				w.Fatal(err)
			}
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
			a, err := w.put(uri, last+1, len(p), fmt.Sprint(len(p)))
			if err != nil {
				w.Fatal(err)
			}
			return a
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
					if got, err := w.gcs.ReadObject("bkt", name); err != nil || !bytes.Equal(got, p) {
						t.Errorf("%s, size %d: read back %d bytes, %v", way, size, len(got), err)
					}
				}
			}
		})
	}
}

// A body that was cut off is no object, whatever the way.
func TestCutInserts(t *testing.T) {
	w := newWorld(t, &fakegcs.Options{Faults: []fakegcs.Fault{{Match: fakegcs.Match{Op: fakegcs.OpInsert}, Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectCutRequest, Bytes: q + 1}}}})
	for _, target := range []string{"/upload/storage/v1/b/bkt/o?uploadType=media&name=x", "/bkt/x"} {
		method := "POST"
		if target == "/bkt/x" {
			method = "PUT"
		}
		if _, err := w.try(method, target, data(2*q)); err == nil {
			t.Errorf("%s was answered", target)
		}
	}
	w.gcs.ClearFaults()
	unfinished := "--b\r\n\r\n{\"name\":\"x\"}\r\n--b\r\n\r\nhello"
	if a := w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart", []byte(unfinished), "Content-Type: multipart/related; boundary=b"); a.StatusCode != 400 {
		t.Errorf("multipart without its end: %d %s", a.StatusCode, a.body)
	}
	if _, ok := w.gcs.Object("bkt", "x"); ok {
		t.Error("there is an object")
	}
}

func TestKnobs(t *testing.T) {
	w := newWorld(t, &fakegcs.Options{RunningHash: true, Query308: true, CreateBuckets: true})
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
	if a := w.do("POST", "/upload/storage/v1/b/another/o?uploadType=media&name=x", nil); a.StatusCode != 200 {
		t.Errorf("a new bucket: %d", a.StatusCode)
	}
	if a := w.do("POST", "/upload/storage/v1/b/NOT_VALID/o?uploadType=media&name=x", nil); a.StatusCode != 400 {
		t.Errorf("a bucket with a bad name: %d", a.StatusCode)
	}
}

// What is wrong with a request is said with the right status.
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
		{"POST", "/storage/v1/b", `{}`, nil, 400, "Required parameter: name"},
		{"POST", "/storage/v1/b", `{"name":"bkt"}`, nil, 409, "conflict"},
		{"POST", "/storage/v1/b", `{"name":"Not_Valid"}`, nil, 400, "bucket name"},
		{"POST", "/storage/v1/b", `{`, nil, 400, "parseError"},
		{"DELETE", "/storage/v1/b/bkt", "", nil, 409, "not empty"},
		{"DELETE", "/storage/v1/b/nothing", "", nil, 404, "notFound"},
		{"GET", "/storage/v1/b/bkt?ifMetagenerationNotMatch=1", "", nil, 304, ""},
		{"GET", "/storage/v1/b/bkt/o/a?ifGenerationMatch=x", "", nil, 400, "whole number"},
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
		{"PATCH", "/storage/v1/b/bkt/o/a", "[", nil, 400, "parseError"},
		{"POST", "/storage/v1/b/bkt/o/a/compose", `{}`, nil, 400, "at least one"},
		{"POST", "/storage/v1/b/bkt/o/a/fly", "", nil, 501, "does not implement"},
		{"POST", "/upload/storage/v1/b/bkt/o?name=x", "", nil, 405, ""},
		{"POST", "/upload/storage/v1/b/bkt/o?name=x&uploadType=tea", "", nil, 400, "tea"},
		{"POST", "/upload/storage/v1/b/bkt/o?name=x&upload_id=y", "", nil, 405, ""},
		{"POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=" + strings.Repeat("x", 1025), "", nil, 400, "1024"},
		{"POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=a%0Ab", "", nil, 400, "unicode"},
		{"POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=x", "", []string{"X-Upload-Content-Length: many"}, 400, "X-Upload-Content-Length"},
		{"POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart&name=x", "--b", []string{"Content-Type: multipart/related; boundary=b"}, 400, "Malformed multipart"},
		{"POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart&name=x", "", []string{"Content-Type: text/plain"}, 400, "Unsupported content"},
		{"GET", "/storage/v1/nonsense", "", nil, 404, ""},
	} {
		a := w.do(test.method, test.path, []byte(test.body), test.headers...)
		if a.StatusCode != test.status || !strings.Contains(a.body, test.has) {
			t.Errorf("%s %.80s = %d %.300s, want %d %q", test.method, test.path, a.StatusCode, a.body, test.status, test.has)
		}
	}
}
