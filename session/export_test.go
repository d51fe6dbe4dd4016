package session

// Unexported names for the tests of package session_test.
const (
	Lifetime    = lifetime
	MaxRestarts = maxRestarts
)

// Destructive reports whether a reply would end its session, so that it must be
// confirmed.
func Destructive(s State, r Reply) bool { return s.destructive(&r) != 0 }
