package gcs_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/upload/gcs"
)

// TestServerRepeatsTheToken checks that an error shows the message of a server or a
// proxy without the credentials that the message repeats.
func TestServerRepeatsTheToken(t *testing.T) {
	srv, _ := emulator(t, &fakegcs.Options{})
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "refused: %s %s", r.Header.Get("Authorization"), r.Header.Get("X-Key"))
	}))
	defer ts.Close()
	c := newClient(t, &gcs.Options{
		Endpoint: ts.URL, CredentialsFile: credentialsFile(t, &tokens{srv: srv}), Header: http.Header{"X-Key": {"SECRET"}},
	})
	_, err := put(t, uploader(t, c, nil), 100)
	if err == nil || !strings.Contains(err.Error(), "refused: Bearer [token] [header]") {
		t.Errorf("error = %v, want the message without the secrets", err)
	}
}
