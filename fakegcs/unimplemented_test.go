package fakegcs_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"gcsup/fakegcs"
)

// text is a log for concurrent writers.
type text struct {
	mu sync.Mutex
	strings.Builder
}

func (l *text) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.Write(p)
}

// Google's clients retry a 501 until their context ends. Therefore the server refuses
// unimplemented features with 400, and logs each once.
func TestUnimplementedIsRefusedAndLoggedOnce(t *testing.T) {
	for _, test := range []struct{ method, target, named string }{
		{"GET", "/storage/v1/b/bkt/o/a/iam/testPermissions?permissions=x", "GET /storage/v1/b/*/o/*/iam/testPermissions"},
		{"POST", "/storage/v1/b/bkt/relocate", "POST /storage/v1/b/*/relocate"},
		{"GET", "/storage/v1/projects/mine/secret", "GET /storage/v1/projects/*/secret"},
		{"PUT", "/b/bkt/o/a%2Fsecret/lock", "PUT /b/*/o/*/lock"},
		{"GET", "/storage/v1/b/bkt/o?filter=x", "listing by this filter"},
		{"GET", "/bkt?lifecycle", "GET /*?lifecycle"},
		{"PUT", "/bkt?cors", "PUT /*?cors"},
		{"PUT", "/bkt/x?compose", "PUT /*/*?compose"},
		{"GET", "/bkt/x?acl", "GET /*/*?acl"},
		{"POST", "/bkt", "POST /*"},
		{"OPTIONS", "/storage/v1/b/bkt/o", "OPTIONS /storage/v1/b/*/o"},
	} {
		var log text
		w := newWorld(t, &fakegcs.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for range 3 {
			if a := w.want(400, "does not implement "+test.named, test.method, test.target, nil); !strings.Contains(strings.ToLower(a.body), "notimplemented") {
				t.Errorf("%s %s: %s", test.method, test.target, a.body)
			}
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `request="`+test.named+`"`) && !strings.Contains(got, "request="+test.named) {
			t.Errorf("%s %s: the log has %q", test.method, test.target, got)
		}
	}
}

// A call of gRPC gets the status UNIMPLEMENTED of gRPC, which clients do not retry.
func TestGRPCIsUnimplemented(t *testing.T) {
	var log text
	w := newWorld(t, &fakegcs.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 {
		a := w.do("POST", "/google.storage.v2.Storage/BidiWriteObject", data(5), "Content-Type: application/grpc")
		if a.StatusCode != 200 || a.Header.Get("Content-Type") != "application/grpc" || a.Header.Get("Grpc-Status") != "12" || !strings.Contains(a.Header.Get("Grpc-Message"), "does not implement gRPC") || a.body != "" {
			t.Errorf("%d %v %q", a.StatusCode, a.Header, a.body)
		}
	}
	if got := log.String(); strings.Count(got, "request=gRPC") != 1 {
		t.Errorf("the log has %q", got)
	}
}

// Invalid requests are not logged as unimplemented.
func TestInvalidRequestsAreNotLogged(t *testing.T) {
	var log text
	w := newWorld(t, &fakegcs.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, test := range []struct {
		method, target string
		status         int
	}{
		{"GET", "/storage/v1/b/bkt/o/x", 404}, {"GET", "/nowhere-to-go/x", 404}, {"POST", "/storage/v1/b/bkt/o/x", 405},
		{"POST", "/b/bkt/o", 400}, {"GET", "/storage/v1/b/bkt/o?fields=nonsense", 400}, {"PUT", "/storage/v1/b/bkt/storageLayout", 405},
	} {
		w.want(test.status, "", test.method, test.target, nil)
	}
	if log.Len() > 0 {
		t.Errorf("the log has %s", log.String())
	}
}
