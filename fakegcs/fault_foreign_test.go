package fakegcs_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// fault returns a plan of one line.
func fault(op faults.Op, do faults.Action) []faults.Fault {
	return []faults.Fault{{Match: faults.Match{Op: op}, Do: do}}
}

// A client must not trust a 404, 410 or 400 of a proxy. Therefore each reply of the
// server to an upload request has the service's header.
func TestEveryUploadReplyIsMarked(t *testing.T) {
	w := newWorld(t, nil)
	gone := w.start("gone")
	w.gcs.AddFaults(fault(faults.OpQuery, faults.Action{Effect: faults.EffectGone})...)
	w.do("PUT", gone, nil, "Content-Range: bytes */*")
	canceled := w.start("canceled")
	w.do("DELETE", canceled, nil)
	lost := w.start("lost")
	w.gcs.AddFaults(fault(faults.OpQuery, faults.Action{Effect: faults.EffectNotFound})...)
	w.do("PUT", lost, nil, "Content-Range: bytes */*")
	failing := w.start("failing")
	w.gcs.AddFaults(fault(faults.OpCancel, faults.Action{Effect: faults.EffectStatus, Status: 500})...)

	uri := w.start("x")
	stripped := strings.Replace(uri, "uploadType=resumable", "", 1)
	for _, test := range []struct {
		method, target string
		body           []byte
		header         string
		status         int
	}{
		{"PUT", gone, nil, "Content-Range: bytes */*", 410},
		{"PUT", canceled, nil, "Content-Range: bytes */*", 499},
		{"PUT", lost, nil, "Content-Range: bytes */*", 404},
		{"PUT", w.url + "/upload/storage/v1/b/bkt/o?uploadType=resumable&upload_id=none", nil, "Content-Range: bytes */*", 404},
		{"DELETE", failing, nil, "", 500},
		{"POST", stripped, nil, "", 405},
		{"PUT", uri, nil, "Content-Range: nonsense", 400},
		{"PUT", uri, data(9), "Content-Range: bytes */*", 400},
		{"PUT", uri, data(9), "Content-Range: bytes 0-9/*", 400},
		{"PUT", uri, data(9), "Content-Range: bytes 9-17/18", 503},
		{"PUT", uri, nil, "Content-Range: bytes */*", 308},
		{"PUT", uri, data(9), "Content-Range: bytes 0-8/9", 200},
		{"POST", w.url + "/upload/storage/v1/b/nowhere-to-go/o?uploadType=resumable&name=x", nil, "", 404},
		{"POST", w.url + "/upload/storage/v1/b/bkt/o?uploadType=media&name=x&ifGenerationMatch=7", nil, "", 412},
		{"POST", w.url + "/upload/storage/v1/b/bkt/o?uploadType=media&name=x", nil, "", 200},
		{"GET", w.url + "/storage/v1/b/bkt/o/x", nil, "", 200},
		{"GET", w.url + "/storage/v1/b/bkt/o/x?alt=media", nil, "", 200},
		{"GET", w.url + "/storage/v1/b/bkt/o/y?alt=media", nil, "", 404},
	} {
		a := w.do(test.method, test.target, test.body, test.header)
		if a.StatusCode != test.status || a.Header.Get("X-GUploader-UploadID") == "" || a.Header.Get("Server") != "UploadServer" {
			t.Errorf("%s %s %s = %d %v, want %d with the mark", test.method, test.target, test.header, a.StatusCode, a.Header, test.status)
		}
	}
}

// A fault can reply like a load balancer or a captive portal: without the service's
// headers, and with any status, body and Location.
func TestForeignRepliesAreNotMarked(t *testing.T) {
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	const page = "<html>not here</html>"
	for _, test := range []struct {
		do                   faults.Action
		body, kind, location string
	}{
		{faults.Action{Status: 404, Body: page}, page, "text/html; charset=UTF-8", ""},
		{faults.Action{Status: 410, Body: page, ContentType: "text/plain"}, page, "text/plain", ""},
		{faults.Action{Status: 400, ContentType: "text/html"}, "", "text/html", ""},
		{faults.Action{Status: 302, Location: "http://portal.invalid/login"}, "", "text/html; charset=UTF-8", "http://portal.invalid/login"},
		{faults.Action{Status: 307, Location: "/elsewhere", Body: page}, page, "text/html; charset=UTF-8", "/elsewhere"},
		{faults.Action{Status: 308, Location: "ftp://other.invalid"}, "", "text/html; charset=UTF-8", "ftp://other.invalid"},
	} {
		test.do.Effect = faults.EffectStatus
		for _, op := range []faults.Op{faults.OpStart, faults.OpPut, faults.OpFinalize, faults.OpQuery, faults.OpCancel, faults.OpInsert, faults.OpGet} {
			w := newWorld(t, &fakegcs.Options{Faults: fault(op, test.do)})
			uri := w.url + "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=x"
			if op != faults.OpStart {
				uri = w.start("x")
			}
			var a answer
			switch op {
			case faults.OpStart:
				a = w.do("POST", uri, nil)
			case faults.OpPut:
				a = w.do("PUT", uri, data(q), chunkRange(0, q, "*"))
			case faults.OpFinalize:
				a = w.do("PUT", uri, data(q), chunkRange(0, q, "262144"))
			case faults.OpQuery:
				a = w.do("PUT", uri, nil, "Content-Range: bytes */*")
			case faults.OpCancel:
				a = w.do("DELETE", uri, nil)
			case faults.OpInsert:
				a = w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=x", nil)
			case faults.OpGet:
				a = w.do("GET", "/storage/v1/b/bkt/o/x", nil)
			}
			h := a.Header
			if a.StatusCode != test.do.Status || a.body != test.body || h.Get("Content-Type") != test.kind || h.Get("Location") != test.location {
				t.Errorf("%s %+v: %d %q %v", op, test.do, a.StatusCode, a.body, h)
			}
			if h.Get("X-GUploader-UploadID") != "" || h.Get("Server") != "" || h.Get("Date") == "" {
				t.Errorf("%s %+v: headers %v", op, test.do, h)
			}
		}
	}
}

// If a connection is closed just after a reply, the next request on it is lost, and
// none of its bytes are committed.
func TestConnectionClosedAfterReply(t *testing.T) {
	plan := fault(faults.OpQuery, faults.Action{Effect: faults.EffectCloseAfter, For: 20 * time.Millisecond})
	bubble(t, &fakegcs.Options{Faults: plan}, func(w *world) {
		uri := w.start("x")
		if a := w.do("PUT", uri, nil, "Content-Range: bytes */*"); a.StatusCode != 308 || a.Header.Get("X-GUploader-UploadID") == "" || a.Header.Get("Connection") != "" {
			t.Errorf("the reply before the close: %d %v", a.StatusCode, a.Header)
		}
		sent := time.Now()
		if a, err := w.put(uri, 0, 4*q, "*"); err == nil || time.Since(sent) != 20*time.Millisecond {
			t.Errorf("the next request: %v, %v after %v", a.Response, err, time.Since(sent))
		}
		if got := w.committed(uri); got != "" {
			t.Errorf("the lost request committed %q", got)
		}
		w.chunk(308, uri, 0, 4*q, "*")
		if requests := w.gcs.Requests(); len(requests) != 4 || requests[1].Fault != faults.EffectCloseAfter || requests[1].Status != 308 {
			t.Errorf("requests %+v", requests)
		}
	})
}

// The reply before the connection closes is complete, with its body.
func TestCloseAfterSendsTheBody(t *testing.T) {
	w := newWorld(t, &fakegcs.Options{Rate: 1 << 30, Faults: []faults.Fault{{Times: -1, Do: faults.Action{Effect: faults.EffectCloseAfter, For: time.Millisecond}}}})
	w.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	w.want(200, `"size": "786432"`, "POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=x", data(3*q))
	if a := w.do("GET", "/bkt/x", nil); a.body != string(data(3*q)) {
		t.Errorf("read: %d, %d bytes", a.StatusCode, len(a.body))
	}
	if a := w.do("HEAD", "/bkt/x", nil); a.StatusCode != 200 || a.ContentLength != 3*q {
		t.Errorf("HEAD: %d %v", a.StatusCode, a.Header)
	}
	w.want(204, "", "DELETE", "/bkt/x", nil)
}

// Google's test bench omits the size of an empty object, and so can a fault.
func TestReplyWithoutSize(t *testing.T) {
	omit := faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectOmitSize}}
	w := newWorld(t, &fakegcs.Options{Faults: []faults.Fault{omit}})
	finished := w.do("PUT", w.start("x"), data(9), "Content-Range: bytes 0-8/9")
	for name, a := range map[string]answer{
		"finalize": finished,
		"insert":   w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=y", data(9)),
		"get":      w.do("GET", "/storage/v1/b/bkt/o/x", nil),
	} {
		m := a.json(t)
		if _, has := m["size"]; has || a.StatusCode != 200 || m["generation"] == nil || m["crc32c"] != crc(data(9)) {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	w.want(200, `!"size"`, "GET", "/storage/v1/b/bkt/o", nil)
	begun := w.do("POST", "/bkt/z", nil, "x-goog-resumable: start")
	if a := w.do("PUT", begun.Header.Get("Location"), data(9)); a.StatusCode != 200 || a.Header.Get("X-Goog-Stored-Content-Length") != "" || a.Header.Get("X-Goog-Generation") == "" {
		t.Errorf("XML: %d %v", a.StatusCode, a.Header)
	}
	w.gcs.ClearFaults()
	w.want(200, `"size": "9"`, "GET", "/storage/v1/b/bkt/o/x", nil)
}

// The server's clock can differ from the client's. The Date of every reply and the
// times of objects are those of the server.
func TestClockApart(t *testing.T) {
	for _, skew := range []time.Duration{-26 * time.Hour, 90 * time.Second} {
		bubble(t, &fakegcs.Options{ClockSkew: skew}, func(w *world) {
			check := func(a answer) answer {
				date, err := http.ParseTime(a.Header.Get("Date"))
				if err != nil || !date.Equal(time.Now().Add(skew).Truncate(time.Second)) {
					t.Errorf("%s %s: Date %q, %v; the machine has %v and the server is %v ahead", a.Request.Method, a.Request.URL, a.Header.Get("Date"), err, time.Now(), skew)
				}
				return a
			}
			uri := check(w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=x", nil)).Header.Get("Location")
			check(w.do("PUT", uri, data(q), chunkRange(0, q, "*")))
			time.Sleep(time.Hour)
			made := check(w.do("PUT", uri, data(q + 5)[q:], chunkRange(q, q+5, "262149"))).json(t)
			want := time.Now().Add(skew).UTC().Format("2006-01-02T15:04:05.000Z")
			if made["timeCreated"] != want || made["updated"] != want {
				t.Errorf("created at %v, updated at %v, want %s", made["timeCreated"], made["updated"], want)
			}
			w.gcs.AddFaults(faults.Fault{Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
				faults.Fault{Do: faults.Action{Effect: faults.EffectStatus, Status: 502, Body: "bad gateway"}},
				faults.Fault{Do: faults.Action{Effect: faults.EffectCloseAfter, For: time.Millisecond}})
			for range 4 {
				check(w.do("GET", "/storage/v1/b/bkt/o/x", nil))
				time.Sleep(time.Second)
			}
			check(w.do("GET", "/nowhere-to-go/x", nil))
			check(w.do("GET", "/_fakegcs/stats", nil))
			if err := w.gcs.Close(); err != nil {
				t.Error(err)
			}
			check(w.do("GET", "/bkt/x", nil))
		})
	}
}
