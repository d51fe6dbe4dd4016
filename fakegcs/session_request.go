package fakegcs

import (
	"io"
	"net/http"

	"gcsup/fakegcs/faults"
)

// Resumable uploads,
// https://cloud.google.com/storage/docs/performing-resumable-uploads: the requests on
// a session. The session itself is in session.go.

// maxObject is the size limit of an object, https://cloud.google.com/storage/quotas#objects.
const maxObject = 5 << 40

// answer processes a request on a session.
func (s *sessions) answer(q *request) *reply {
	notFound := textReply(http.StatusNotFound, "Not Found").mark(q.upload)
	u := s.find(q.upload)
	if u == nil {
		return notFound
	}
	u.mu.Lock()
	expired := u.expired(u.store.now())
	u.mu.Unlock()
	if expired {
		s.forget(u)
		return notFound
	}
	if s.endByFault(&q.fault.session, u) {
		return notFound
	}
	if err := u.changeBytes(q); err != nil {
		return err.reply(u.XML)
	}
	if key, err := encryptionKey(q.Header, "X-Goog-Encryption-"); err != nil {
		return err.reply(u.XML)
	} else if err := checkKey(key, &u.Meta); err != nil {
		return err.reply(u.XML)
	}
	switch {
	case q.op == faults.OpCancel:
		return u.cancel(q)
	case q.contentRange.query:
		return u.query(q)
	}
	return u.put(q)
}

// forget removes a session that has expired or is removed by a fault.
func (s *sessions) forget(u *session) {
	u.mu.Lock() // until forget returns, so that a writer does not save the record again
	defer u.mu.Unlock()
	s.mu.Lock()
	delete(s.byID, u.ID)
	s.mu.Unlock()
	if err := u.store.disk.RemoveSession(u.ID); err != nil {
		u.store.log.Warn("fakegcs: remove session", "err", err)
	}
	if u.State == active {
		u.State = canceled
		u.sum.Idle()
		u.blob.Release()
		u.blob = nil
	}
}

// cancel ends the session. It returns 499, the status of a successful cancellation.
func (u *session) cancel(q *request) *reply {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r := u.closedReplyLocked(q); r != nil {
		return r
	}
	if err := u.endLocked(canceled, nil); err != nil {
		return err.reply(q.xml)
	}
	return u.canceledReply()
}

// query returns the committed offset. "bytes */T" makes the object if T bytes are
// committed; "bytes */*" never does.
func (u *session) query(q *request) *reply {
	// Without a Content-Length, as HTTP/2 allows, only a read shows whether there is a body.
	if n, _ := io.CopyN(io.Discard, q.in, 1); n > 0 {
		return textReply(http.StatusBadRequest, "Invalid request.  A request with an unsatisfied Content-Range must not have a body.")
	}
	u.mu.Lock()
	if w := u.writer; w != nil {
		u.mu.Unlock()
		u.settle(q, w, patience)
		u.mu.Lock()
	}
	defer u.mu.Unlock()
	if r := u.closedReplyLocked(q); r != nil {
		return r
	}
	total := q.contentRange.total
	complete := total >= 0 && total == u.blob.Size() && total == u.committedLocked(u.store.now()) && u.writer == nil
	if !complete || q.fault.session.notFinal {
		return u.incompleteLocked(q)
	}
	if u.Total >= 0 && u.Total != total {
		return textReply(http.StatusBadRequest, totalChanged(u.Total, total))
	}
	u.Total = total
	return u.finalize(q)
}

// identify completes a request on a session. Its URL and headers need not contain the
// names of the object, or show that the request carries the last byte.
func (s *sessions) identify(q *request) {
	if q.upload == "" {
		return
	}
	u := s.find(q.upload)
	if u == nil {
		return
	}
	q.bucket, q.object, q.xml = u.Meta.Bucket, u.Meta.Name, u.XML
	if q.rangeErr != nil {
		return
	}
	c := q.contentRange
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case q.op == faults.OpPut && c.total < 0 && c.last+1 == u.Total:
		q.op = faults.OpFinalize
	case q.op == faults.OpQuery && c.total >= 0 && u.State == active && c.total == u.committedLocked(u.store.now()):
		q.op = faults.OpFinalize // the last byte is there, and only the total was missing
	}
}
