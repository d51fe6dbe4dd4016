package emulator

import (
	"encoding/json"
	"flag"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
)

func noneGiven(string) bool { return false }

// TestNames checks that Names has all flags.
func TestNames(t *testing.T) {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	new(Flags).Add(fs)
	names := Names()
	fs.VisitAll(func(f *flag.Flag) {
		if !slices.Contains(names, f.Name) {
			t.Errorf("Names has no --%s", f.Name)
		}
	})
	for _, name := range names {
		if fs.Lookup(name) == nil {
			t.Errorf("there is no flag --%s", name)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]size{"0": 0, "7": 7, "1KiB": 1024, "1.5 MiB": 3 << 19, "2gib": 2 << 30, "1MB": 1e6, "3B": 3, "1TiB": 1 << 40} {
		var s, again size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q is %d, %v, want %d", text, s, err, want)
		}
		if err := again.Set(s.String()); s != 0 && (err != nil || again != s) {
			t.Errorf("%q is printed as %q", text, s.String())
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1XB", "9999999999TiB", "NaN", "Inf"} {
		if err := new(size).Set(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// TestRequestLog checks that the request log has one line for each request, for any
// content of its fields.
func TestRequestLog(t *testing.T) {
	at := time.Date(2026, 11, 21, 13, 4, 5, 6e6, time.UTC)
	chunk := fakegcs.Request{
		Time: at, Elapsed: 1500 * time.Microsecond, Method: "PUT", Path: "/upload?upload_id=REDACTED", Op: faults.OpPut, Bucket: "demo", Object: "a b/ü",
		ContentRange: "bytes 0-9/*", Received: 10, Status: 308, Range: "bytes=0-8", Fault: faults.EffectShortCommit,
	}
	lost := fakegcs.Request{Time: at, Method: "GET", Op: faults.OpRead, Bucket: "demo", Object: "one\ntwo\x1b[2J", Sent: 7}
	for _, test := range []struct {
		request fakegcs.Request
		want    string
	}{
		{chunk, "13:04:05.006 PUT    put           demo/a b/ü: 308, sent bytes 0-9/*, committed bytes=0-8, fault short-commit (10 bytes in, 0 out, 1.5ms)\n"},
		{lost, `13:04:05.006 GET    read          "demo/one\ntwo\x1b[2J": no reply (0 bytes in, 7 out, 0s)` + "\n"},
	} {
		var text, line strings.Builder
		for form, to := range map[string]*strings.Builder{"text": &text, "json": &line} {
			f := Flags{addr: "127.0.0.1:0", log: form, splitAfter: time.Hour}
			opts, err := f.options(noneGiven, to)
			require.NoError(t, err)
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
	f := Flags{addr: "127.0.0.1:0", createBuckets: true, splitAfter: time.Hour}
	opts, err := f.options(noneGiven, &stderr)
	require.NoError(t, err)
	e, err := New(opts)
	require.NoError(t, err)
	defer e.Close()
	for range 2 {
		reply := httptest.NewRecorder()
		e.http.Handler.ServeHTTP(reply, httptest.NewRequest("GET", "/storage/v1/b/demo/relocate", nil))
		if reply.Code != 400 {
			t.Errorf("status %d: %s", reply.Code, reply.Body)
		}
	}
	if got := stderr.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `msg="fakegcs: not implemented" request="GET /storage/v1/b/*/relocate"`) {
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

// TestLocalHost checks that a server on a loopback address is not reached by a name of another
// machine, and that one on all addresses is.
func TestLocalHost(t *testing.T) {
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	loopback, all := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, &net.TCPAddr{IP: net.IPv4zero, Port: 80}
	for host, want := range map[string]int{
		"127.0.0.1:4443": 200, "localhost": 200, "LOCALHOST.:80": 200, "bkt.localhost:4443": 200, "[::1]:80": 200, "::1": 200,
		"evil.example:4443": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403, "10.0.0.1": 403, "": 403,
	} {
		for _, addr := range []net.Addr{loopback, all} {
			r := httptest.NewRequest("GET", "/", nil)
			r.Host = host
			reply := httptest.NewRecorder()
			localHost(addr, ok).ServeHTTP(reply, r)
			if status := reply.Code; status != want && (addr == loopback || status != 200) {
				t.Errorf("host %q at %v: %d, want %d", host, addr, status, want)
			}
		}
	}
}
