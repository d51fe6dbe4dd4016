package fakegcs

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"sync"
	"time"

	"gcsup/fakegcs/internal/blob"
)

// sessionLifetime is the time for which a session can be used,
// https://cloud.google.com/storage/docs/resumable-uploads#introduction.
const sessionLifetime = 7 * 24 * time.Hour

// checkpointEvery is the maximum number of bytes that must be hashed again after a
// kill of the emulator.
const checkpointEvery = 64 << 20

// The states of a session.
const (
	active   = ""         // accepts bytes
	final    = "final"    // the object exists; every request returns it
	canceled = "canceled" // every request returns 499
	dead     = "dead"     // every request returns 410 with the cause in the body
)

// sessionRecord is the state of a session that the directory keeps.
type sessionRecord struct {
	ID      string     `json:"id"` // the upload_id
	XML     bool       `json:"xml,omitempty"`
	Meta    Object     `json:"meta"` // of the object that it will make
	Cond    conditions `json:"conditions"`
	CRC32C  *CRC32C    `json:"wantCrc32c,omitempty"` // declared at the start
	MD5     []byte     `json:"wantMd5,omitempty"`
	Created time.Time  `json:"created"`
	Total   int64      `json:"total"` // size of the object, -1 unknown; once known it can't change

	State    string  `json:"state,omitempty"`
	Poison   string  `json:"poison,omitempty"` // the error of later requests, after a chunk that was too short
	Status   int     `json:"status,omitempty"` // the cause of a dead session
	Reason   string  `json:"reason,omitempty"`
	Message  string  `json:"message,omitempty"`
	Object   *Object `json:"object,omitempty"`
	BlobID   string  `json:"blob,omitempty"`
	Size     int64   `json:"size"`               // bytes committed at the last checkpoint
	Sum      CRC32C  `json:"crc32c"`             // of those
	MD5State []byte  `json:"md5State,omitempty"` // of those
}

// session is one resumable upload.
//
// mu is held for short steps only: to commit 256 KiB, to reply to a query, or to make
// the object. No request holds it while it waits for the network. One request at a
// time is the session's writer. It commits steps of 256 KiB, and checks before each
// one that it still is the writer.
//
// This has two consequences for a client that lost its connection. A query waits
// until the writer has read the remaining bytes of the dead connection: until the
// writer ends, or no bytes arrive for [silence]. A new data request adopts the
// session from a silent writer, whose later bytes are dropped. A stalled request
// therefore cannot block a session. While a writer is busy, a query waits for at most
// [patience] and then returns the current offset, and a data request waits for its
// turn.
type session struct {
	store *store
	mu    sync.Mutex
	sessionRecord
	blob   *blob.Blob
	sum    *blob.Digest
	writer *writer
	// A late-commit fault: until hiddenUntil the session reports only hiddenAt
	// bytes.
	hiddenAt    int64
	hiddenUntil time.Time
}

// sessions are the resumable uploads of a server, and make objects in its store.
type sessions struct {
	store *store
	mu    sync.Mutex // may be locked by the holder of a session's mu
	byID  map[string]*session
}

// find returns a session, or nil.
func (s *sessions) find(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

// expired reports whether the session no longer exists. A session that made its
// object does not expire, because a client that lost the reply must still find the
// object.
func (r *sessionRecord) expired(now time.Time) bool {
	return r.State != final && now.Sub(r.Created) > sessionLifetime
}

const (
	silence  = 100 * time.Millisecond
	ticks    = 10 // number of ticks in silence
	patience = 2 * time.Second
)

// writer is the request that may add bytes to a session.
type writer struct {
	in   *body
	done chan struct{} // closed when it no longer reads
}

// settle waits until w has ended or is silent, or until limit has passed; 0 means no
// limit. It reports whether w ended. The silence counts from the call of settle,
// because data that the system has just received may not have reached w yet.
func (u *session) settle(q *request, w *writer, limit time.Duration) bool {
	tick := time.NewTicker(silence / ticks)
	defer tick.Stop()
	start, activity := time.Now(), w.in.activity.Load()
	for quiet := 0; quiet < ticks && !w.in.stalled.Load() && (limit == 0 || time.Since(start) < limit); {
		select {
		case <-w.done:
			return true
		case <-tick.C:
			// Ticks are counted, because no data can arrive while the machine is
			// suspended.
			quiet++
			if now := w.in.activity.Load(); now != activity {
				activity, quiet = now, 0
			}
		case <-q.Context().Done():
			return false
		case <-u.store.ctx.Done():
			return false
		}
	}
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// claim makes q the writer of u when the earlier writer has ended or is silent. It
// fails only if q or the server ends.
func (u *session) claim(q *request) (*writer, *apiError) {
	w := &writer{in: q.in, done: make(chan struct{})}
	for {
		u.mu.Lock()
		earlier := u.writer
		if earlier == nil {
			u.writer = w
			u.mu.Unlock()
			return w, nil
		}
		u.mu.Unlock()
		if u.settle(q, earlier, 0) {
			continue
		}
		if q.Context().Err() != nil || u.store.ctx.Err() != nil {
			return nil, refuse(http.StatusServiceUnavailable, "backendError", "Another request is using this upload session.")
		}
		u.mu.Lock()
		if u.writer == earlier {
			u.writer = nil
			earlier.in.interrupt()
		}
		u.mu.Unlock()
	}
}

// resignLocked ends w. Another request may have replaced it already.
func (u *session) resignLocked(w *writer) {
	if u.writer == w {
		u.writer = nil
		if u.blob != nil { // nil if the session has ended meanwhile
			u.sum.Idle()
			_ = u.blob.Close() // the system already has every byte
		}
	}
	close(w.done)
}

// committedLocked returns the number of bytes that the session reports.
func (u *session) committedLocked(now time.Time) int64 {
	if now.Before(u.hiddenUntil) {
		return min(u.hiddenAt, u.blob.Size())
	}
	return u.blob.Size()
}

// takeLocked commits p, which the caller must not change afterwards. If pooled is
// set, p returns to the pool when it is no longer needed.
func (u *session) takeLocked(p []byte, pooled bool) error {
	kept, err := u.blob.Append(p, true)
	if err != nil {
		if pooled {
			u.store.buffers.Put(p)
		}
		return err
	}
	u.sum.Add(p, pooled && !kept)
	if u.blob.Size()-u.Size >= checkpointEvery {
		return u.saveLocked()
	}
	return nil
}

// saveLocked writes the session's record to the directory, if there is one.
func (u *session) saveLocked() error {
	if u.store.disk == nil {
		return nil
	}
	if u.State == active {
		u.Size, u.Sum, u.MD5State = u.blob.Size(), CRC32C(u.sum.CRC32C()), u.sum.State()
	}
	return u.store.disk.SaveSession(u.ID, &u.sessionRecord)
}

// endLocked ends the session. The session then accepts no more bytes, and its bytes
// are released. It cannot fail for the final state.
func (u *session) endLocked(state string, cause *apiError) *apiError {
	was := u.sessionRecord
	u.State = state
	if cause != nil {
		u.Status, u.Reason, u.Message = cause.status, cause.reason, cause.message
	}
	u.MD5State = nil
	if err := u.saveLocked(); err != nil {
		if state != final {
			u.sessionRecord = was
			return errInternal(err)
		}
		// After a restart, the object's record shows that the session is finished.
		u.store.log.Warn("fakegcs: save finished session", "err", err)
	}
	u.sum.Idle()
	if state != final {
		u.blob.Release()
	}
	u.blob = nil
	return nil
}

// closedReplyLocked returns the reply of a session that has ended, or nil if it is
// active.
func (u *session) closedReplyLocked(q *request) *reply {
	switch u.State {
	case final:
		return u.finishedReply(q)
	case canceled:
		return u.canceledReply()
	case dead:
		// The status is always 410; the body has the cause.
		cause := &apiError{status: u.Status, reason: u.Reason, message: u.Message}
		r := cause.reply(false)
		r.status = http.StatusGone
		return u.mark(r)
	}
	return nil
}

// canceledReply returns the reply to a cancellation and to every request after it. The body is that of
// a recording of the JSON API; none of the XML API is known.
func (u *session) canceledReply() *reply {
	if u.XML {
		return u.mark(newReply(statusClientClosed))
	}
	const text = "clientClosedRequest"
	return u.mark(refuse(statusClientClosed, text, text).reply(false))
}

// mark adds the headers of every reply of the upload servers.
func (u *session) mark(r *reply) *reply {
	return r.mark(u.ID)
}

// finishedReply returns the object that the session has made. XML sessions
// return it in headers, without a body.
func (u *session) finishedReply(q *request) *reply {
	if u.XML {
		return u.mark(q.writtenReply(u.Object))
	}
	return u.mark(objectReply(http.StatusOK, q.resource(u.Object)))
}

// incompleteLocked returns the 308 with the committed offset. With X-GUploader-No-308
// it is a 200 with an override header.
func (u *session) incompleteLocked(q *request) *reply {
	now := u.store.now()
	n := u.committedLocked(now)
	r := newReply(http.StatusPermanentRedirect)
	if q.Header.Get("X-Guploader-No-308") == "yes" && (!q.contentRange.query || !u.store.opts.Query308) {
		r = newReply(http.StatusOK).set("X-Http-Status-Code-Override", "308")
	}
	r.set("Content-Type", "text/plain; charset=utf-8")
	claimed := n
	if by := q.fault.session.rangeBy; by != 0 {
		claimed = max(0, n+by)
	}
	if claimed > 0 && !q.fault.session.noRange {
		r.set("Range", "bytes=0-"+strconv.FormatInt(claimed-1, 10))
	}
	if n > 0 && n == u.blob.Size() {
		crc, sum := CRC32C(u.sum.CRC32C()), u.sum.MD5()
		if q.fault.object.wrongHash {
			crc ^= 1
			if sum != nil {
				sum[0] ^= 1
			}
		}
		if sum != nil {
			r.set("X-Range-Md5", hex.EncodeToString(sum))
		}
		if !u.store.opts.NoRunningHash {
			r.set("X-Goog-Running-Hash", "crc32c="+crc.String())
		}
	}
	return u.mark(r)
}
