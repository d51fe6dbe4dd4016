package main

import (
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/cli/exit"
	"gcsup/session"
	"gcsup/upload/gcs"
)

func TestEndpointMismatch(t *testing.T) {
	t.Setenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN", "")
	f := &targetFlags{state: stateFlags{dir: t.TempDir()}}
	const google = "https://storage.googleapis.com"
	for _, test := range []struct{ inUse, endpoint, want string }{
		{google, localEndpoint(filepath.Join(f.state.dir, "emulator")), "it was started with --emulator: give --emulator again"},
		{google, localEndpoint("/else"), "it was started with --emulator: give --emulator=DIR with the same directory"},
		{"https://storage.example", google, "it was started at https://storage.googleapis.com: remove --emulator and --endpoint, and unset STORAGE_EMULATOR_HOST"},
		{gcs.MutualTLSEndpoint, google, "it was started at https://storage.googleapis.com: set GOOGLE_API_USE_MTLS_ENDPOINT=never"},
		{google, gcs.MutualTLSEndpoint, "it was started at https://storage.mtls.googleapis.com: remove --emulator and --endpoint, unset STORAGE_EMULATOR_HOST, and set GOOGLE_API_USE_MTLS_ENDPOINT=always"},
		{google, "https://storage.example", "it was started at https://storage.example, not at https://storage.googleapis.com: if that is an emulator, set STORAGE_EMULATOR_HOST=https://storage.example; if you trust it with your credentials, give --endpoint=https://storage.example"},
	} {
		err := f.endpointMismatch(&connection{endpoint: test.inUse}, test.endpoint)
		if err.Error() != test.want || !errors.Is(err, session.ErrURIMismatch) || exit.Classify(err).Code != exit.Config {
			t.Errorf("endpointMismatch(%s) = %v, want %s", test.endpoint, err, test.want)
		}
	}
}

// TestUserAgent checks that the requests name the program and the library, each with its version.
func TestUserAgent(t *testing.T) {
	srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true})
	t.Setenv("STORAGE_EMULATOR_HOST", srv.URL)
	t.Setenv("GCSUP_STATE_DIR", t.TempDir())
	var messages strings.Builder
	if code := execute(t.Context(), []string{"cp", "-q", "-", "gs://demo/o"}, stdio{strings.NewReader("x"), io.Discard, &messages}); code != exit.OK {
		t.Fatalf("exit code %d: %s", code, &messages)
	}
	for _, r := range srv.Requests() {
		if !regexp.MustCompile(`^gcsup-cli/[\w.+-]+ gcsup/[\w.+-]+$`).MatchString(r.UserAgent) {
			t.Errorf("%s has the User-Agent %q", r.Op, r.UserAgent)
		}
	}
}
