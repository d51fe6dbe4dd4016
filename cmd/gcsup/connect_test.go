package main

import (
	"errors"
	"path/filepath"
	"testing"

	"gcsup/session"
)

func TestEndpointMismatch(t *testing.T) {
	t.Setenv("GOOGLE_CLOUD_UNIVERSE_DOMAIN", "")
	f := &targetFlags{stateDir: t.TempDir()}
	c := &connection{endpoint: "https://storage.googleapis.com"}
	for _, test := range []struct{ endpoint, want string }{
		{localEndpoint(filepath.Join(f.stateDir, "emulator")), "it was begun with --emulator: give that again"},
		{localEndpoint("/else"), "it was begun with --emulator: give --emulator=DIR, with the directory that it had then"},
		{"https://storage.googleapis.com", "it was begun at https://storage.googleapis.com: give neither --emulator nor --endpoint, and unset STORAGE_EMULATOR_HOST"},
		{"https://storage.example", "it was begun at https://storage.example, not at https://storage.googleapis.com: set STORAGE_EMULATOR_HOST=https://storage.example if that is an emulator; else, if you trust it with your credentials, give --endpoint=https://storage.example"},
	} {
		err := f.endpointMismatch(c, &session.Token{Endpoint: test.endpoint})
		if err.Error() != test.want || !errors.Is(err, session.ErrForeignURI) || classify(err).code != exitConfig {
			t.Errorf("endpointMismatch(%s) = %v, want %s", test.endpoint, err, test.want)
		}
	}
}
