package fakegcs_test

import (
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/ops"
	"gcsup/internal/require"
)

// batchOf returns the body of a batch of raw calls.
func batchOf(calls ...string) []byte {
	var b strings.Builder
	for i, call := range calls {
		fmt.Fprintf(&b, "--sep\r\nContent-Type: application/http\r\nContent-ID: <id+%d>\r\n\r\n%s\r\n", i+1, call)
	}
	return []byte(b.String() + "--sep--\r\n")
}

// TestBatch sends calls as different clients write them.
func TestBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &fakegcs.Options{RequireToken: true, Faults: []faults.Fault{{
		Match: faults.Match{Op: faults.OpGet, Object: "flaky"}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503},
	}}})
	w.gcs.AllowToken("good")
	auth := "Authorization: Bearer good"
	for _, name := range []string{"a b", "flaky", "c"} {
		w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name="+escape(name), data(3), auth)
	}
	a := w.do("POST", "/batch/storage/v1", batchOf(
		"GET /storage/v1/b/bkt/o/a%20b?fields=name HTTP/1.1\r\nHost: storage.googleapis.com\r\n\r\n",
		"DELETE /storage/v1/b/bkt/o/c HTTP/1.1\nContent-Type: application/json\ncontent-length: 0\n", // gcsfs: no blank line
		"GET https://storage.googleapis.com/storage/v1/b/bkt/o/c HTTP/1.1\r\n\r\n",
		"PATCH https://storage.googleapis.com/storage/v1/b/bkt/o/a%20b HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 23\r\n\r\n{\"contentType\":\"x/new\"}",
		"GET /storage/v1/b/bkt/o/flaky HTTP/1.1\r\n\r\n",
		"GET /storage/v1/b/bkt/o/a%20b?alt=media HTTP/1.1\r\n\r\n",
		"GET /storage/v1/b/bkt HTTP/1.1\r\nAuthorization: Bearer bad\r\n\r\n",
		"nonsense",
	), auth, "Content-Type: multipart/mixed; boundary=sep")
	if a.StatusCode != 200 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	kind, params, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" {
		t.Fatal(kind, err)
	}
	parts := multipart.NewReader(strings.NewReader(a.body), params["boundary"])
	for i, want := range []struct{ status, has string }{
		{"200 OK", `"name": "a b"`},
		{"204 No Content", ""},
		{"404 Not Found", "notFound"},
		{"200 OK", `"contentType": "x/new"`},
		{"503 Service Unavailable", "backendError"},
		{"400 Bad Request", "can't have a call of this kind"},
		{"401 Unauthorized", "authError"},
		{"400 Bad Request", "Failed to parse"},
	} {
		part, err := parts.NextPart()
		require.NoError(t, err)
		text, err := io.ReadAll(part)
		require.NoError(t, err)
		if !strings.HasPrefix(string(text), "HTTP/1.1 "+want.status+"\r\n") || !strings.Contains(string(text), want.has) {
			t.Errorf("call %d: %s, want %+v", i+1, text, want)
		}
		if got, want := part.Header.Get("Content-ID"), fmt.Sprintf("<response-id+%d>", i+1); got != want || part.Header.Get("Content-Type") != "application/http" {
			t.Errorf("call %d has the ID %s, want %s", i+1, got, want)
		}
	}
	if _, err := parts.NextPart(); err != io.EOF {
		t.Error("more replies than calls:", err)
	}
	if n := w.gcs.Stats().Ops; n[ops.Batch] != 1 || n[faults.OpPatch] != 1 || n[faults.OpDelete] != 1 {
		t.Errorf("%v", n)
	}
	calls := make([]string, 101)
	for i := range calls {
		calls[i] = "DELETE /storage/v1/b/bkt/o/x HTTP/1.1\r\n\r\n"
	}
	for _, test := range []struct{ body, contentType string }{
		{string(batchOf(calls...)), "multipart/mixed; boundary=sep"},
		{"sep", "multipart/mixed; boundary=sep"},
		{"{}", "application/json"},
	} {
		w.want(http.StatusBadRequest, "", "POST", "/batch/storage/v1", []byte(test.body), auth, "Content-Type: "+test.contentType)
	}
}

// A connection fault on one call acts on the connection of the batch.
func TestBatchConnection(t *testing.T) {
	for _, effect := range []faults.Effect{faults.EffectReset, faults.EffectClose, faults.EffectLoseReply, faults.EffectCutReply, faults.EffectStallReply} {
		t.Run(string(effect), func(t *testing.T) {
			bubble(t, &fakegcs.Options{Faults: []faults.Fault{
				{Match: faults.Match{Op: faults.OpDelete}, Do: faults.Action{Effect: effect}},
			}}, func(w *world) {
				w.insert("x", "x")
				w.client.Timeout = time.Minute
				batch := func() (answer, error) {
					return w.try("POST", "/batch/storage/v1", batchOf("DELETE /storage/v1/b/bkt/o/x HTTP/1.1\r\n\r\n"), "Content-Type: multipart/mixed; boundary=sep")
				}
				if a, err := batch(); err == nil {
					w.Errorf("the batch got a reply: %s", a.body)
				}
				_, there := w.gcs.Object("bkt", "x")
				if never := effect == faults.EffectReset || effect == faults.EffectClose; there != never {
					w.Errorf("object exists: %v", there)
				}
				if _, err := batch(); err != nil {
					w.Errorf("the next batch: %v", err)
				}
			})
		})
	}
}
