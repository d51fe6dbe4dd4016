package fakegcs

import "gcsup/fakegcs/internal/blob"

// Faults that change the bytes of a session permanently.

// changeBytes applies such a fault before the operation of q. It does nothing if the
// session has ended.
func (u *session) changeBytes(q *request) *apiError {
	f := &q.fault.session
	if f.foreign == 0 && f.rewind == 0 {
		return nil
	}
	w, err := u.claim(q)
	if err != nil {
		return err
	}
	var failed error
	if f.foreign > 0 {
		failed = u.writeForeign(q, w, f.foreign)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	defer u.resignLocked(w)
	if u.State != active {
		return nil
	}
	if f.rewind > 0 {
		failed = u.rewindLocked(f.rewind)
	}
	switch {
	case failed == blob.ErrDiscarded:
		return errUnimplemented("the effect rewind in discard mode")
	case failed != nil:
		return errInternal(failed)
	}
	if err := u.saveLocked(); err != nil {
		return errInternal(err)
	}
	return nil
}

// writeForeign commits n zeros, as if another client used the session, but never more
// than the upload's total. w is q as the writer of the session. It uses 256 KiB of
// memory for any n, and does not block queries.
func (u *session) writeForeign(q *request, w *writer, n int64) error {
	zeros := make([]byte, granularity)
	step := func() (more bool, err error) {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.writer != w || u.State != active {
			return false, nil
		}
		size := u.blob.Size()
		k := min(n, granularity-size%granularity, maxObject-size)
		if u.Total >= 0 {
			k = min(k, u.Total-size)
		}
		if k <= 0 {
			return false, nil
		}
		n -= k
		return true, u.takeLocked(zeros[:k], false)
	}
	for q.Context().Err() == nil && u.store.ctx.Err() == nil {
		w.in.activity.Add(1) // so that no other request adopts the session
		if more, err := step(); err != nil || !more {
			return err
		}
	}
	return nil
}

// rewindLocked removes the last n bytes.
func (u *session) rewindLocked(n int64) error {
	size := max(0, u.blob.Size()-n)
	kept, err := u.blob.Section(0, size)
	if err != nil {
		return err
	}
	defer kept.Close()
	u.sum.Idle()
	sum := blob.NewDigest(&u.store.buffers, u.sum.HasMD5())
	defer sum.Idle()
	if err := blob.ReadChunks(kept, 0, &u.store.buffers, func(p []byte) error { sum.Add(p, true); return nil }); err != nil {
		return err
	}
	if err := u.blob.Truncate(size); err != nil {
		return err
	}
	u.sum = sum
	return nil
}

// endByFault applies a fault that ends a session, and reports whether the session no
// longer exists. A finished session stays finished.
func (s *sessions) endByFault(f *sessionFault, u *session) (forgotten bool) {
	if f.forget {
		s.forget(u)
		return true
	}
	if f.end == "" {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.State == active {
		_ = u.endLocked(f.end, f.cause) // if it fails, the session stays active
	}
	return false
}
