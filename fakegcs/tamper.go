package fakegcs

import (
	"io"
	"net/http"
)

// Faults that change what a session holds behind the client's back, for good.

// tamper lets such a fault act before q's operation is done. It does nothing
// to a session that takes no more bytes.
func (s *Server) tamper(q *request, u *session) *apiError {
	if !q.fault.is(EffectForeignWrite) && !q.fault.is(EffectRewind) {
		return nil
	}
	w, err := s.claim(q, u)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	defer u.resignLocked(w)
	if u.State != active {
		return nil
	}
	var failed error
	if q.fault.Effect == EffectForeignWrite {
		failed = s.writeForeignLocked(u, q.fault.Bytes)
	} else {
		failed = s.rewindLocked(u, q.fault.Bytes)
	}
	switch {
	case failed == errDiscarded:
		return refuse(http.StatusNotImplemented, "notImplemented", "%v", failed)
	case failed != nil:
		return errInternal(failed)
	}
	if err := s.saveLocked(u); err != nil {
		return errInternal(err)
	}
	return nil
}

// writeForeignLocked commits n zeros, as another client that uses the same
// session would its own bytes; never more than the upload's total.
func (s *Server) writeForeignLocked(u *session, n int64) error {
	if u.Total >= 0 {
		n = min(n, u.Total-u.blob.size())
	}
	return readQuanta(io.LimitReader(zeros{}, n), u.blob.size(), &s.buffers, func(p []byte) error { return s.takeLocked(u, p) })
}

// rewindLocked forgets the last n bytes.
func (s *Server) rewindLocked(u *session, n int64) error {
	size := max(0, u.blob.size()-n)
	kept, err := u.blob.section(0, size)
	if err != nil {
		return err
	}
	defer kept.Close()
	u.sum.idle()
	sum := newDigest(&s.buffers, u.sum.md5 != nil)
	defer sum.idle()
	if err := readQuanta(kept, 0, &s.buffers, func(p []byte) error { sum.add(p, true); return nil }); err != nil {
		return err
	}
	if err := u.blob.truncate(size); err != nil {
		return err
	}
	u.sum = sum
	return nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
