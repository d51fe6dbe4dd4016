package session

// Destructive reports whether a reply would end its session, and must be
// confirmed.
func Destructive(r Reply) bool { return r.destructive() != 0 }
