package fakegcs_test

import (
	"fmt"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// These tests check which requests a fault matches.

// Nth counts the requests on each object separately.
func TestNth(t *testing.T) {
	opts := &fakegcs.Options{Faults: []faults.Fault{{
		Match: faults.Match{Op: faults.OpPut, Nth: 2}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 500},
	}}}
	bubble(t, opts, func(w *world) {
		one, two := w.start("one"), w.start("two")
		for _, step := range []struct {
			uri          string
			from, status int
		}{{one, 0, 308}, {two, 0, 308}, {two, q, 500}, {two, q, 308}, {one, q, 500}, {one, q, 308}, {one, 2 * q, 308}} {
			w.chunk(step.status, step.uri, step.from, step.from+q, "*")
		}
		if r := w.gcs.FaultReport()[0]; r.Seen != 2 || r.Fired != 2 || r.Done {
			t.Errorf("report: %+v", r)
		}
	})
}

// Nth counts all matching requests, even those on which another fault acted.
func TestNthBesideOthers(t *testing.T) {
	status := func(nth, status int) faults.Fault {
		return faults.Fault{Match: faults.Match{Op: faults.OpGet, Nth: nth}, Do: faults.Action{Effect: faults.EffectStatus, Status: status}}
	}
	w := newWorld(t, &fakegcs.Options{Faults: []faults.Fault{status(1, 501), status(2, 502), status(4, 504)}})
	get := func() int { return w.do("GET", "/storage/v1/b/bkt/o/x", nil).StatusCode }
	for i, want := range []int{501, 502, 404, 504, 404} {
		if got := get(); got != want {
			t.Errorf("request %d: %d, want %d", i+1, got, want)
		}
	}
	w.addFaults(status(1, 500))
	if got := get(); got != 500 {
		t.Errorf("the first request after a fault was added: %d, want 500", got)
	}
}

// A chunk "a-b/*" that reaches the declared length carries the last byte.
func TestFinalizeByDeclaredLength(t *testing.T) {
	w := newWorld(t, &fakegcs.Options{Faults: []faults.Fault{
		{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
	}})
	uri := w.start("x", fmt.Sprint("X-Upload-Content-Length: ", 2*q))
	for _, step := range []struct{ from, status int }{{0, 308}, {q, 503}, {q, 200}} {
		w.chunk(step.status, uri, step.from, step.from+q, "*")
	}
}

// A request without bytes that makes the object is matched as the last one, as the one
// with the last byte is: the official Writer ends an upload of a multiple of its chunk size
// with "bytes */N". Before the object can be made, the same request is a query.
func TestFinalizeWithoutBytes(t *testing.T) {
	for name, do := range map[string]faults.Action{
		"status":       {Effect: faults.EffectStatus, Status: 503},
		"status after": {Effect: faults.EffectStatusAfter, Status: 503, Bytes: q},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, &fakegcs.Options{Faults: []faults.Fault{{Match: faults.Match{Op: faults.OpFinalize}, Do: do}}})
			uri := w.start("x")
			total := fmt.Sprint("Content-Range: bytes */", 2*q)
			for i, step := range []struct{ from, status int }{{0, 308}, {-1, 308}, {q, 308}, {-1, 503}, {-1, 200}, {-1, 200}} {
				var a answer
				var err error
				if step.from < 0 {
					a, err = w.try("PUT", uri, nil, total)
				} else {
					a, err = w.put(uri, step.from, step.from+q, "*")
				}
				if err != nil || a.StatusCode != step.status {
					t.Errorf("step %d: %d %v, want %d", i, a.StatusCode, err, step.status)
				}
			}
			if r := w.gcs.FaultReport()[0]; r.Seen != 1 || r.Fired != 1 {
				t.Errorf("report: %+v", r)
			}
		})
	}
}

// A fault matches an object even if its name is only in the request's body. The body
// is not changed by that.
func TestFaultByNameInBody(t *testing.T) {
	media := string(data(3*q + 7))
	multipart := "--sep\r\nContent-Type: application/json\r\n\r\n{\"name\":\"x\"}\r\n--sep\r\n\r\n" + media + "\r\n--sep--\r\n"
	for name, test := range map[string]struct{ kind, contentType, body string }{
		"resumable": {"resumable", "application/json", `{"name": "x"}`},
		"multipart": {"multipart", "multipart/related; boundary='sep'", multipart},
	} {
		t.Run(name, func(t *testing.T) {
			fault := faults.Fault{Match: faults.Match{Object: "x", Nth: 2}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}
			w := newWorld(t, &fakegcs.Options{Faults: []faults.Fault{fault}})
			for _, want := range []int{200, 503, 200} {
				w.want(want, "", "POST", "/upload/storage/v1/b/bkt/o?uploadType="+test.kind, []byte(test.body), "Content-Type: "+test.contentType)
			}
			if got, _ := w.gcs.ReadObject("bkt", "x"); test.kind == "multipart" && string(got) != media {
				t.Errorf("the object has %d bytes, want %d", len(got), len(media))
			}
			for _, r := range w.gcs.Requests() {
				if r.Object != "x" || r.Received != int64(len(test.body)) {
					t.Errorf("request log: object %q, %d bytes", r.Object, r.Received)
				}
			}
			w.gcs.ClearFaults() // then the insert itself finds the name
			w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType="+test.kind, []byte(test.body), "Content-Type: "+test.contentType)
			if list := w.gcs.Requests(); list[len(list)-1].Object != "x" {
				t.Errorf("request log without faults: %+v", list[len(list)-1])
			}
		})
	}
}
