package main

import (
	"errors"
	"path/filepath"
	"testing"

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
