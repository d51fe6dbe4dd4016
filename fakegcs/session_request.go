package fakegcs

import (
	"io"
	"net/http"
)

// Resumable uploads, https://cloud.google.com/storage/docs/performing-resumable-uploads:
// what each request on a session does. The session itself is in session.go.

// maxObject is the size limit of an object, https://cloud.google.com/storage/quotas#objects.
const maxObject = 5 << 40

// onSession finds the session of q and does what q asks of it.
func (s *Server) onSession(q *request) *reply {
	notFound := textReply(http.StatusNotFound, "Not Found").mark(q.upload)
	s.mu.Lock()
	u := s.sessions[q.upload]
	s.mu.Unlock()
	if u == nil {
		return notFound
	}
	u.mu.Lock()
	expired := u.expired(s.now())
	u.mu.Unlock()
	if expired {
		s.forget(u)
		return notFound
	}
	if s.strike(&q.fault.session, u) {
		return notFound
	}
	if err := s.tamper(q, u); err != nil {
		return err.reply(u.XML)
	}
	switch q.op {
	case OpCancel:
		return s.cancelSession(q, u)
	case OpQuery:
		return s.querySession(q, u)
	}
	return s.put(q, u)
}

// forget drops a session that is too old, or that a fault took away.
func (s *Server) forget(u *session) {
	u.mu.Lock() // for all of it: what is still writing must not bring the record back
	defer u.mu.Unlock()
	s.mu.Lock()
	delete(s.sessions, u.ID)
	s.mu.Unlock()
	if err := s.disk.RemoveSession(u.ID); err != nil {
		s.log.Warn("fakegcs: remove session", "err", err)
	}
	if u.State == active {
		u.State = cancelled
		u.sum.Idle()
		u.blob.Release()
		u.blob = nil
	}
}

// cancelSession answers 499, which is the success of a cancellation.
func (s *Server) cancelSession(q *request, u *session) *reply {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r := s.closedReplyLocked(q, u); r != nil {
		return r
	}
	if err := s.endLocked(u, cancelled, nil); err != nil {
		return err.reply(q.xml)
	}
	return u.mark(newReply(statusClientClosed))
}

// querySession answers how much is committed. "bytes */T" makes the object
// when T bytes are there; "bytes */*" never does.
func (s *Server) querySession(q *request, u *session) *reply {
	// Without a Content-Length, as HTTP/2 allows, only a read shows whether there is a body.
	if n, _ := io.CopyN(io.Discard, q.in, 1); n > 0 {
		return textReply(http.StatusBadRequest, "Invalid request.  A request with an unsatisfied Content-Range must not have a body.")
	}
	u.mu.Lock()
	if w := u.writer; w != nil {
		u.mu.Unlock()
		s.settle(q, w, patience)
		u.mu.Lock()
	}
	defer u.mu.Unlock()
	if r := s.closedReplyLocked(q, u); r != nil {
		return r
	}
	total := q.contentRange.total
	complete := total >= 0 && total == u.blob.Size() && total == u.committedLocked(s.now()) && u.writer == nil
	if !complete || q.fault.session.notFinal {
		return s.incompleteLocked(q, u)
	}
	if u.Total >= 0 && u.Total != total {
		return textReply(http.StatusBadRequest, totalChanged(u.Total, total))
	}
	u.Total = total
	return s.finalize(q, u)
}
