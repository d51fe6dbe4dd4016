package session

// MaxRestarts is maxRestarts.
const MaxRestarts = maxRestarts

// Destructive reports whether a reply would end its session, so that it must be
// confirmed.
func Destructive(s State, r Reply) bool { return s.destructive(&r) != 0 }

// NoUpload reports whether the multipart upload of a request does not exist.
func NoUpload(r Reply) bool { return r.noUpload() }
