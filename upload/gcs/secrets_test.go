package gcs_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/upload"
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
	up := uploader(t, c, nil)
	path, _ := source(t, 100)
	_, err := up.File(t.Context(), path, upload.Spec{Bucket: "bkt", Object: "o"})
	if err == nil || !strings.Contains(err.Error(), "refused: Bearer [token] [header]") {
		t.Errorf("error = %v, want the message without the secrets", err)
	}
}
