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
	clean(t)
	srv, _ := emulator(t, &fakegcs.Options{})
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "refused: %s %s", r.Header.Get("Authorization"), r.Header.Get("X-Key"))
	}))
	defer ts.Close()
	c, err := gcs.New(t.Context(), &gcs.Options{
		Endpoint: ts.URL, CredentialsFile: credentialsFile(t, &tokens{srv: srv}), Header: http.Header{"X-Key": {"SECRET"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	up, err := c.Uploader(nil)
	if err != nil {
		t.Fatal(err)
	}
	path, _ := source(t, 100)
	_, err = up.File(t.Context(), path, upload.Spec{Bucket: "bkt", Object: "o"})
	if err == nil || !strings.Contains(err.Error(), "refused: Bearer [token] [header]") {
		t.Errorf("error = %v, want the message without the secrets", err)
	}
}
