package fakegcs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"
	"github.com/googleapis/gax-go/v2/callctx"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// TestRetryConformance runs Google's retry conformance scenarios for uploads with the
// official library, as its own tests do. Every instruction must be consumed.
// https://github.com/googleapis/conformance-tests/blob/main/storage/v1/retry_tests.json
func TestRetryConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	w := newWorld(t, nil)
	client := w.sdk()
	client.SetRetry(storage.WithBackoff(gax.Backoff{Initial: 10 * time.Millisecond}))

	const whole, split = 3 << 20, 9 << 20
	for i, test := range []struct {
		instructions []string
		size, chunk  int
		precondition bool
		fails        bool
	}{
		{[]string{"return-503", "return-503"}, 11, 16 << 20, true, false}, // 2: conditionally idempotent
		{[]string{"return-reset-connection", "return-reset-connection"}, 11, 16 << 20, true, false},
		{[]string{"return-reset-connection", "return-503"}, whole, 2 << 20, true, false},
		{[]string{"return-503"}, 11, 16 << 20, false, true}, // 3: without precondition
		{[]string{"return-reset-connection"}, whole, 2 << 20, false, true},
		{[]string{"return-400"}, 11, 16 << 20, true, true}, // 5: not retryable
		{[]string{"return-401"}, whole, 2 << 20, true, true},
		{[]string{"return-503", "return-400"}, 11, 16 << 20, true, true}, // 6: mixed
		{[]string{"return-reset-connection", "return-401"}, whole, 2 << 20, true, true},
		{[]string{"return-reset-connection", "return-503"}, split, 4 << 20, true, false}, // 7: resumable uploads
		{[]string{"return-408"}, split, 4 << 20, true, false},
		{[]string{"return-503-after-256K"}, split, 4 << 20, true, false},
		{[]string{"return-503-after-8192K", "return-408"}, split, 4 << 20, true, false},
		{[]string{"return-503-after-4080K"}, split, 4 << 20, true, false},
		{[]string{"return-503-after-1000K", "return-503-after-1024K", "return-503-after-1025K", "return-503-after-4000K", "return-503-after-4096K", "return-503-after-4097K"}, split, 4 << 20, true, false},
	} {
		t.Run(fmt.Sprintf("%v/%d", test.instructions, test.size), func(t *testing.T) {
			body, _ := json.Marshal(map[string]any{"instructions": map[string]any{"storage.objects.insert": test.instructions}, "transport": "HTTP"})
			a := w.do("POST", "/retry_test", body)
			if a.StatusCode != 200 {
				t.Fatal(a.body)
			}
			id := a.json(t)["id"].(string)
			ctx := callctx.SetHeaders(context.Background(), "x-retry-test-id", id)
			name := fmt.Sprint("x", i)
			obj := client.Bucket("bkt").Object(name)
			if test.precondition {
				obj = obj.If(storage.Conditions{DoesNotExist: true})
			}
			wr := obj.NewWriter(ctx)
			wr.ChunkSize = test.chunk
			_, err := wr.Write(data(test.size))
			if closeErr := wr.Close(); err == nil {
				err = closeErr
			}
			if (err != nil) != test.fails {
				t.Errorf("upload: %v", err)
			}
			if !test.fails {
				w.holds(name, data(test.size))
			}
			if a := w.do("GET", "/retry_test/"+id, nil); a.json(t)["completed"] != true {
				t.Errorf("instructions are left: %s", a.body)
			}
		})
	}
}

func TestRetryTestRefusals(t *testing.T) {
	w := newWorld(t, nil)
	for _, body := range []string{`{`, `{}`, `{"instructions":{}}`, `{"instructions":{"storage.objects.insert":["return-5030-after-1K"]}}`, `{"instructions":{"storage.objects.insert":["return-tea"]}}`, `{"instructions":{"storage.objects.insert":["return-999"]}}`} {
		w.want(400, "", "POST", "/retry_test", []byte(body))
	}
	// Suites skip a test for 501.
	w.want(501, "", "POST", "/retry_test", []byte(`{"instructions":{"storage.folders.get":["return-503"]}}`))
	w.want(501, "", "POST", "/retry_test", []byte(`{"instructions":{"storage.objects.get":["return-503"]},"transport":"grpc"}`))
	w.want(404, "", "GET", "/storage/v1/b/bkt", nil, "x-retry-test-id: of-another-server")
}

// TestRetryTestList lists the tests in the order in which they were created.
func TestRetryTestList(t *testing.T) {
	w := newWorld(t, &fakegcs.Options{CreateBuckets: true})
	list := func() string {
		var ids []string
		for _, test := range w.do("GET", "/retry_tests", nil).json(t)["retry_test"].([]any) {
			ids = append(ids, test.(map[string]any)["id"].(string))
		}
		return strings.Join(ids, " ")
	}
	if got := list(); got != "" {
		t.Errorf("at first: %s", got)
	}
	var ids []string
	for range 5 {
		a := w.do("POST", "/retry_test", []byte(`{"instructions":{"storage.buckets.list":["return-429"]},"transport":"http"}`))
		ids = append(ids, a.json(t)["id"].(string))
		if a.json(t)["transport"] != "HTTP" || a.json(t)["completed"] != false {
			t.Errorf("created: %s", a.body)
		}
	}
	if got := list(); got != strings.Join(ids, " ") {
		t.Errorf("list: %s, want %s", got, ids)
	}
	w.do("DELETE", "/retry_test/"+ids[1], nil)
	if got := list(); got != strings.Join(append(ids[:1:1], ids[2:]...), " ") {
		t.Errorf("list after a delete: %s", got)
	}
	for _, method := range []string{"DELETE", "GET", "PUT"} {
		w.want(404, "", method, "/retry_test/"+ids[1], nil)
		if a := w.do(method, "/retry_test", nil); method != "GET" && a.StatusCode != 405 {
			t.Errorf("%s of all: %d", method, a.StatusCode)
		}
	}
}

// A request or a reply with fewer bytes than an instruction needs, or without the
// object that it needs, does not consume the instruction.
func TestRetryInstructionsWait(t *testing.T) {
	w := newWorld(t, nil)
	w.insert("small", "128 bytes or so")
	w.insert("large", string(data(q)))
	for _, test := range []struct {
		method, instruction string
		before              func(id string) // must not consume it
		on                  func(id string) // must consume it
	}{
		{"insert", "return-broken-stream-final-chunk-after-5B", func(id string) {
			w.insert("x", "x", id)
			uri := w.start("x", id)
			w.do("PUT", uri, nil, "Content-Range: bytes */*", id)
			w.do("PUT", uri, data(q), chunkRange(0, q, "*"), id)
			w.do("PUT", uri, data(q), chunkRange(2*q, 3*q, "*"), id) // 503
			w.do("DELETE", uri, nil, id)
		}, func(id string) {
			uri := w.start("x", id)
			if a := w.do("PUT", uri, data(9), id); a.StatusCode != 200 || a.body != `{`+"\n"+`  "` || a.ContentLength != 5 {
				t.Errorf("final reply: %d, length %d, %q", a.StatusCode, a.ContentLength, a.body)
			}
			w.want(200, `"size": "9"`, "PUT", uri, nil, "Content-Range: bytes */*", id)
		}},
		{"get", "return-broken-stream-after-256K", func(id string) {
			w.do("GET", "/bkt/small", nil, id)
			w.do("GET", "/bkt/none", nil, id)
			w.do("HEAD", "/bkt/large", nil, id)
			w.do("GET", "/bkt/large", nil, "Range: bytes=1-", id)
		}, func(id string) {
			if a, err := w.try("GET", "/bkt/large", nil, id); err == nil || len(a.body) != q-1 {
				t.Errorf("broken stream: %d bytes, %v", len(a.body), err)
			}
		}},
		{"get", "return-broken-stream", func(id string) {
			w.do("GET", "/bkt/small", nil, "Range: bytes=0-2", id)
		}, func(id string) {
			if a, err := w.try("GET", "/storage/v1/b/bkt/o/small?alt=media", nil, id); err == nil || a.body != "128 " {
				t.Errorf("broken stream: %q, %v", a.body, err)
			}
		}},
		{"get", "stall-for-0s-after-255K", func(id string) { w.do("GET", "/bkt/small", nil, id) }, func(id string) { w.do("GET", "/bkt/large", nil, id) }},
		{"insert", "return-503-after-256K", func(id string) {
			w.insert("x", string(data(q-1)), id)
			uri := w.start("x", id)
			w.do("PUT", uri, data(q-1), fmt.Sprintf("Content-Range: bytes 0-*/%d", q-1), id)
		}, func(id string) {
			w.want(503, "", "PUT", w.start("x", id), data(q), "Content-Range: bytes 0-*/*", id)
		}},
	} {
		t.Run(test.instruction, func(t *testing.T) {
			body := fmt.Sprintf(`{"instructions":{"storage.objects.%s":[%q]}}`, test.method, test.instruction)
			id := w.do("POST", "/retry_test", []byte(body)).json(t)["id"].(string)
			completed := func() bool { return w.do("GET", "/retry_test/"+id, nil).json(t)["completed"] == true }
			test.before("x-retry-test-id: " + id)
			if completed() {
				t.Fatal("the wrong request consumed the instruction")
			}
			test.on("x-retry-test-id: " + id)
			if !completed() {
				t.Error("the instruction was not consumed")
			}
		})
	}
}

// TestRetryInstructions runs the instructions that stall.
func TestRetryInstructions(t *testing.T) {
	bubble(t, nil, func(w *world) {
		create := func(instruction, method string) string {
			body := fmt.Sprintf(`{"instructions":{%q:[%q]}}`, method, instruction)
			return "x-retry-test-id: " + w.do("POST", "/retry_test", []byte(body)).json(w)["id"].(string)
		}
		stall := create("stall-for-2s-after-300K", "storage.objects.insert")
		uri := w.start("x", stall)
		start := time.Now()
		w.do("PUT", uri, data(q), chunkRange(0, q, "*"), stall)
		if d := time.Since(start); d > time.Second {
			t.Errorf("stalled %v before 300K", d)
		}
		if a := w.do("PUT", uri, data(2 * q)[q:], chunkRange(q, 2*q, fmt.Sprint(2*q)), stall); a.StatusCode != 200 || time.Since(start) < 2*time.Second {
			t.Errorf("status %d after %v", a.StatusCode, time.Since(start))
		}
		start = time.Now()
		stall = create("stall-for-2s-after-256K", "storage.objects.get")
		if a := w.do("GET", "/bkt/x", nil, stall); a.body != string(data(2*q)) || time.Since(start) < 2*time.Second {
			t.Errorf("stalled download: %d bytes after %v", len(a.body), time.Since(start))
		}
		if a := w.do("GET", "/retry_tests", nil); strings.Count(a.body, `"completed": true`) != 2 {
			t.Errorf("not all are completed: %s", a.body)
		}
	})
}

// Methods that share an operation have separate instructions.
func TestRetryMethods(t *testing.T) {
	w := newWorld(t, nil)
	w.insert("x", "x")
	const object, bucket = "/storage/v1/b/bkt/o/x", "/storage/v1/b/bkt"
	for _, test := range []struct{ name, method, path, other string }{
		{"storage.objects.update", "PUT", object, "PATCH " + object},
		{"storage.objects.patch", "PATCH", object, "PUT " + object},
		{"storage.buckets.update", "PUT", bucket, "PATCH " + bucket},
		{"storage.objects.copy", "POST", object + "/copyTo/b/bkt/o/y", "POST " + object + "/rewriteTo/b/bkt/o/y"},
		{"storage.objects.rewrite", "POST", object + "/rewriteTo/b/bkt/o/y", "POST " + object + "/copyTo/b/bkt/o/y"},
	} {
		body := fmt.Sprintf(`{"instructions":{%q:["return-503"]}}`, test.name)
		id := "x-retry-test-id: " + w.do("POST", "/retry_test", []byte(body)).json(t)["id"].(string)
		method, path, _ := strings.Cut(test.other, " ")
		w.want(200, "", method, path, []byte("{}"), id)
		w.want(503, "", test.method, test.path, []byte("{}"), id)
	}
}

// TestControl uses the paths that control the server over HTTP.
func TestControl(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &fakegcs.Options{KeepRequests: 2})
	for _, test := range []struct {
		method, path, body string
		status             int
		has                string
	}{
		{"POST", "/_fakegcs/faults", `[{"match":{"op":"bucket-get"},"do":{"effect":"status","status":503}}]`, 204, ""},
		{"POST", "/_fakegcs/faults", `[{"do":{"effect":"nothing"}}]`, 400, "line 1: fault 1: do.effect"},
		{"GET", "/storage/v1/b/bkt", "", 503, ""},
		{"GET", "/storage/v1/b/bkt", "", 200, ""},
		{"GET", "/_fakegcs/faults", "", 200, `"fired": 1`},
		{"DELETE", "/_fakegcs/faults", "", 204, ""},
		{"GET", "/_fakegcs/faults", "", 200, "[]"},
		{"POST", "/_fakegcs/faults?random=3&seed=9&size=100", "", 204, ""},
		{"GET", "/_fakegcs/faults", "", 200, `"fired": 0`},
		{"POST", "/_fakegcs/faults?random=3&seed=9&size=9223372036854775807", "", 204, ""},
		{"POST", "/_fakegcs/faults?random=1000000000&seed=9&size=9", "", 400, "at most"},
		{"POST", "/_fakegcs/faults?random=3&seed=x&size=9", "", 400, `seed: "x" is not a whole number`},
		{"POST", "/_fakegcs/faults", "[" + strings.Repeat(`{"match":{"op":"put","bucket":"some-bucket","object":"some/object"},"do":{"effect":"delay","for":"1s"}},`, 20000) + `{"do":{"effect":"close"}}]`, 204, ""},
		{"DELETE", "/_fakegcs/faults", "", 204, ""},
		{"GET", "/_fakegcs/stats", "", 200, `"bucket-get": 2`},
		{"GET", "/_fakegcs/requests", "", 200, `"fault": "status"`},
		{"POST", "/_fakegcs/clock", `{"advance":"-1h"}`, 400, "duration"},
		{"POST", "/_fakegcs/clock", `{"advance":3600}`, 400, "duration"},
		{"POST", "/_fakegcs/clock", `{"advance":"1h"}`, 200, "now"},
		{"POST", "/_fakegcs/token", "", 200, "access_token"},
		{"GET", "/_fakegcs/nonsense", "", 404, "there is no GET"},
	} {
		w.want(test.status, test.has, test.method, test.path, []byte(test.body))
	}
	for range 10 {
		w.do("GET", "/storage/v1/b/bkt", nil)
	}
	if n := len(w.gcs.Requests()); n < 2 || n > 4 {
		t.Errorf("%d requests are kept", n)
	}
	uri := w.start("x")
	w.do("PUT", uri, data(5), "Content-Range: bytes 0-4/5")
	list := w.gcs.Requests()
	last := list[len(list)-1]
	if last.Op != faults.OpFinalize || last.Object != "x" || last.ContentRange != "bytes 0-4/5" || last.Received != 5 || last.Status != 200 || !strings.Contains(last.Path, "upload_id=REDACTED") {
		t.Errorf("last request: %+v", last)
	}
}

// The request log contains no secrets.
func TestRequestsKeepNoSecrets(t *testing.T) {
	var log strings.Builder
	w := newWorld(t, &fakegcs.Options{OnRequest: func(r fakegcs.Request) { fmt.Fprintln(&log, r, slog.AnyValue(r).Resolve()) }})
	const secret = "s3cret"
	for _, query := range []string{
		"upload_id=" + secret, "a=b&upload_id=" + secret + "&c=d", "upload%5Fid=" + secret, "upload_id=" + secret + ";a=b", "upload_id=" + secret + "%zz", "UPLOAD_ID=" + secret,
		"access_token=" + secret, "key=" + secret, "X-Goog-Signature=" + secret, "Signature=" + secret, "upload_id=1&upload_id=" + secret,
	} {
		w.do("GET", "/storage/v1/b/bkt?"+query, nil, "Authorization: Bearer "+secret, "x-goog-encryption-key: "+secret, "Cookie: "+secret)
	}
	w.do("GET", "/storage/v1/b/bkt?fields=name&prettyPrint", nil)
	if a := w.do("GET", "/_fakegcs/requests", nil); strings.Contains(a.body+log.String(), secret) || strings.Count(a.body, "REDACTED") < 11 || !strings.Contains(a.body, `bkt?fields=name&prettyPrint"`) {
		t.Errorf("requests: %s\nlog: %s", a.body, log.String())
	}
}

// Tokens expire and can be revoked. A session URI needs none.
func TestTokens(t *testing.T) {
	bubble(t, &fakegcs.Options{RequireToken: true}, func(w *world) {
		get := func(token string, status int) {
			t.Helper()
			w.want(status, "", "GET", "/storage/v1/b/bkt", nil, "Authorization: Bearer "+token)
		}
		if a := w.do("GET", "/storage/v1/b/bkt", nil); a.StatusCode != 401 || a.Header.Get("WWW-Authenticate") == "" || !strings.Contains(a.body, "authError") {
			t.Errorf("without a token: %d %s", a.StatusCode, a.body)
		}
		token := w.do("POST", "/_fakegcs/token", nil).json(w)["access_token"].(string)
		uri := w.start("x", "Authorization: Bearer "+token)
		get(token, 200)
		w.addFaults(faults.Fault{Do: faults.Action{Effect: faults.EffectRevoke}})
		get(token, 401)
		get(token, 401)
		w.want(200, "", "PUT", uri, data(5))
		w.gcs.AllowToken("mine")
		get("mine", 200)
		time.Sleep(time.Hour)
		get("mine", 401)
	})
}

// A session that is not finished within a week returns 404.
func TestExpiry(t *testing.T) {
	w := newWorld(t, nil)
	open, finished := w.start("x"), w.start("y")
	w.put(open, 0, q, "*")
	w.do("PUT", finished, data(9))
	w.gcs.Advance(7*24*time.Hour - time.Minute)
	if got := w.committed(open); got != "bytes=0-262143" {
		t.Errorf("before a week: %q", got)
	}
	w.gcs.Advance(2 * time.Minute)
	w.want(404, "", "PUT", open, nil, "Content-Range: bytes */*")
	w.want(200, `"size": "9"`, "PUT", finished, nil, "Content-Range: bytes */*")
}
