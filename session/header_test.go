package session_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"gcsup/internal/require"
	"gcsup/session"
)

// TestWithHeader checks that every request has the caller's headers, and that a
// header of the protocol is refused.
func TestWithHeader(t *testing.T) {
	var seen []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.Header.Get("X-Goog-Custom-Audit-Job"))
		w.WriteHeader(http.StatusNotFound)
	}))
	defer srv.Close()
	plain, err := session.NewClient(srv.Client(), srv.URL)
	require.NoError(t, err)
	header := http.Header{"x-goog-custom-audit-job": {"nightly"}}
	client, err := plain.WithHeader(header)
	require.NoError(t, err)
	header.Set("X-Goog-Custom-Audit-Job", "changed later")
	spec := session.Spec{Bucket: "bkt", Object: "obj"}
	client.Start(t.Context(), spec, 1)
	client.Stat(t.Context(), spec)
	plain.Stat(t.Context(), spec)
	if want := []string{"POST nightly", "GET nightly", "GET "}; len(seen) != 3 || seen[0] != want[0] || seen[1] != want[1] || seen[2] != want[2] {
		t.Errorf("requests with %q, want %q", seen, want)
	}

	for _, name := range []string{"content-length", "Content-Range", "authorization", "x-goog-hash", "X-Goog-Encryption-Key", "X-Upload-Content-Length", "Accept-Encoding", "expect", "X-Goog-Gcs-Idempotency-Token", "", "a b", "A\r\nB", "a(b", "é"} {
		if _, err := plain.WithHeader(http.Header{name: {"1"}}); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("%s: error = %v, want ErrInvalid", name, err)
		}
	}
	for _, value := range []string{"a\r\nb", "\x00", "\x01", "\x7f"} {
		if _, err := plain.WithHeader(http.Header{"X-Goog-Request-Reason": {value}}); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("value %q: error = %v, want ErrInvalid", value, err)
		}
	}
	if _, err := plain.WithHeader(http.Header{"X-Goog-Request-Reason": {"Grüße\t(#1)"}}); err != nil {
		t.Error(err)
	}
}
