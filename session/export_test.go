package session

// MaxRestarts is maxRestarts.
const MaxRestarts = maxRestarts

// Destructive reports whether a reply would end its session, so that it must be
// confirmed.
func Destructive(s State, r Reply) bool { return s.destructive(&r) != 0 }

// Merged returns s with the first of all doubts that have the same effect on later decisions. The
// error of an action may still name another status.
func (s State) Merged() State {
	d := Reply{Op: s.doubt.Op, RetryAfter: s.doubt.RetryAfter}
	if s.doubt.unmet() {
		d.Status = 412
	}
	if s.doubt.Inner == 403 || s.doubt.Inner == 429 {
		d.Inner = s.doubt.Inner
	}
	s.doubt = d
	return s
}

// Bytes returns the secret of k.
func (k EncryptionKey) Bytes() []byte { return []byte(*k.secret) }
