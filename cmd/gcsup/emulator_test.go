package main

import (
	"encoding/json"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"gcsup/fakegcs"
)

// TestRequestLog checks that the request log has one line for each request, for any
// content of its fields.
func TestRequestLog(t *testing.T) {
	at := time.Date(2026, 11, 21, 13, 4, 5, 6e6, time.UTC)
	chunk := fakegcs.Request{
		Time: at, Elapsed: 1500 * time.Microsecond, Method: "PUT", Path: "/upload?upload_id=REDACTED", Op: fakegcs.OpPut, Bucket: "demo", Object: "a b/ü",
		ContentRange: "bytes 0-9/*", Received: 10, Status: 308, Range: "bytes=0-8", Fault: fakegcs.EffectShortCommit,
	}
	lost := fakegcs.Request{Time: at, Method: "GET", Op: fakegcs.OpRead, Bucket: "demo", Object: "one\ntwo\x1b[2J", Sent: 7}
	for _, test := range []struct {
		request fakegcs.Request
		want    string
	}{
		{chunk, "13:04:05.006 PUT    put           demo/a b/ü: 308, sent bytes 0-9/*, committed bytes=0-8, fault short-commit (10 bytes in, 0 out, 1.5ms)\n"},
		{lost, `13:04:05.006 GET    read          "demo/one\ntwo\x1b[2J": no reply (0 bytes in, 7 out, 0s)` + "\n"},
	} {
		var text, line strings.Builder
		for form, to := range map[string]*strings.Builder{"text": &text, "json": &line} {
			f := emulatorFlags{addr: "127.0.0.1:0", log: form, splitAfter: time.Hour}
			opts, err := f.options(stdio{err: to}, pflag.NewFlagSet("", 0))
			if err != nil {
				t.Fatal(err)
			}
			opts.OnRequest(test.request)
		}
		if text.String() != test.want {
			t.Errorf("text: %s, want %s", text.String(), test.want)
		}
		var got fakegcs.Request
		if err := json.Unmarshal([]byte(line.String()), &got); err != nil || got != test.request || strings.Count(line.String(), "\n") != 1 {
			t.Errorf("JSON: %s, %v", line.String(), err)
		}
	}
}

// TestUnimplementedIsNamedOnStandardError checks that the emulator prints the name of
// an unimplemented feature once on standard error.
func TestUnimplementedIsNamedOnStandardError(t *testing.T) {
	var stderr strings.Builder
	f := emulatorFlags{addr: "127.0.0.1:0", createBuckets: true, splitAfter: time.Hour}
	opts, err := f.options(stdio{err: &stderr}, pflag.NewFlagSet("", 0))
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEmulated(opts)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	for range 2 {
		reply := httptest.NewRecorder()
		e.http.Handler.ServeHTTP(reply, httptest.NewRequest("GET", "/storage/v1/b/demo/iam", nil))
		if reply.Code != 400 {
			t.Errorf("status %d: %s", reply.Code, reply.Body)
		}
	}
	if got := stderr.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `msg="fakegcs: not implemented" request="GET /storage/v1/b/*/iam"`) {
		t.Errorf("standard error has %q", got)
	}
}

// TestPrintedAddressCanBeUsed checks that a client on this machine can use the
// printed address, and that it is of the requested kind.
func TestPrintedAddressCanBeUsed(t *testing.T) {
	for asked, want := range map[string]string{
		"0.0.0.0:0": "127.0.0.1", "127.0.0.1:0": "127.0.0.1", ":0": "127.0.0.1", "[::]:0": "::1", "[::1]:0": "::1",
	} {
		ln, err := listen(asked)
		if want == "::1" && err != nil {
			t.Logf("%s: no IPv6 here: %v", asked, err)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", asked, err)
			continue
		}
		address := reachable(ln.Addr(), asked)
		if host, _, err := net.SplitHostPort(address); err != nil || host != want {
			t.Errorf("%s: %s is printed, want the host %s", asked, address, want)
		}
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Errorf("%s: %v", asked, err)
		} else {
			conn.Close()
		}
		ln.Close()
	}
}
