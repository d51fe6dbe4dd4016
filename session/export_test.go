package session

// MaxRestarts is maxRestarts.
const MaxRestarts = maxRestarts

// Destructive reports whether a reply would end its session, so that it must be
// confirmed.
func Destructive(s State, r Reply) bool { return s.destructive(&r) != 0 }
