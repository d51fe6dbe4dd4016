package session_test

import (
	"testing"

	"gcsup/internal/wiretest"
	"gcsup/session"
	"gcsup/session/internal/secrettest"
)

// uriAt returns a session URI at an endpoint, as Start would return it.
func uriAt(t testing.TB, endpoint string) session.URI {
	t.Helper()
	return wiretest.URI(t, endpoint, secrettest.Path)
}

func freshURI(t testing.TB) session.URI { return uriAt(t, session.DefaultEndpoint) }
