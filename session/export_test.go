package session

// Unexported names for the tests of package session_test.
const (
	Lifetime    = lifetime
	MaxRestarts = maxRestarts
)

// Destructive reports whether a reply would end its session, so that it must be
// confirmed.
func Destructive(r Reply) bool { return r.destructive() != 0 }
