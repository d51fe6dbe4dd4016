package fakegcs

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"gcsup/fakegcs/internal/blob"
)

// admission determines which bytes of a data request are kept.
type admission struct {
	skip  int64 // bytes of the body that are already committed
	keep  int64 // offset up to which its bytes are kept
	final bool  // it may complete the upload
}

// admitLocked checks the offsets and sizes of a data request. The messages are those
// of the service, if they are known.
func (u *session) admitLocked(q *request) (admission, *apiError) {
	a := admission{keep: math.MaxInt64}
	bad := func(format string, args ...any) (admission, *apiError) {
		return a, &apiError{status: http.StatusBadRequest, text: true, reason: "invalid", message: fmt.Sprintf(format, args...)}
	}
	if q.rangeErr != nil {
		return bad("%v", q.rangeErr)
	}
	c, size, n := q.contentRange, u.blob.Size(), q.contentRange.length()
	if n >= 0 && q.ContentLength >= 0 && n != q.ContentLength {
		return bad("Invalid request.  The Content-Range header spans %d bytes, the Content-Length is %d.", n, q.ContentLength)
	}
	if u.Poison != "" {
		return bad("%s", u.Poison)
	}
	total := u.Total
	if c.total >= 0 {
		if total >= 0 && total != c.total {
			return bad("%s", totalChanged(total, c.total))
		}
		total = c.total
	}
	if total > maxObject || c.last >= maxObject {
		a, err := bad("Invalid request.  The object is larger than %d bytes.", int64(maxObject))
		err.status, err.reason = http.StatusRequestEntityTooLarge, "uploadTooLarge"
		return a, err
	}
	if total >= 0 && total < size {
		return bad("Invalid request.  The total size is given as %d bytes, but %d bytes are uploaded already.", total, size)
	}
	if total >= 0 && (c.first > total || c.last >= total) {
		return bad("Invalid request.  The chunk ends after the total size of %d bytes.", total)
	}
	if total >= 0 {
		// A body of unknown length may have more bytes than the object.
		a.keep = total
		if c.last < 0 && q.ContentLength > total-c.first {
			return bad("Invalid request.  The body ends after the total size of %d bytes.", total)
		}
	}
	if c.first > size {
		a, err := bad("Invalid request.  According to the Content-Range header, the upload offset is %d byte(s), which exceeds already uploaded size of %d byte(s).", c.first, size)
		err.status = http.StatusServiceUnavailable
		return a, err
	}
	a.skip = size - c.first
	a.final = c.last < 0 || c.last+1 == total
	if !a.final {
		if n < granularity {
			u.Poison = fmt.Sprintf("Invalid request.  The number of bytes uploaded is required to be equal or greater than 262144, except for the final request (it's recommended to be the exact multiple of 262144).  The received request contained %d bytes, which does not meet this requirement.", n)
			if err := u.saveLocked(); err != nil {
				return a, errInternal(err)
			}
			return bad("%s", u.Poison)
		}
		a.keep = (c.last + 1) / granularity * granularity
	}
	if u.Total != total {
		u.Total = total
		if err := u.saveLocked(); err != nil {
			return a, errInternal(err)
		}
	}
	f := &q.fault.session
	if f.short > 0 {
		a.keep = min(a.keep, c.first+max(q.ContentLength, 0)-f.short)
	}
	if f.statusAfter != nil {
		a.keep = min(a.keep, f.keepTo)
	}
	return a, nil
}

func totalChanged(was, is int64) string {
	return fmt.Sprintf("Invalid request.  The total size of the upload was given as %d bytes, now the Content-Range header says %d.", was, is)
}

var errOvertaken = errors.New("another request adopted this upload session")

// put processes a data request.
func (u *session) put(q *request) *reply {
	w, claimErr := u.claim(q)
	if claimErr != nil {
		return claimErr.reply(false)
	}
	u.mu.Lock()
	if r := u.closedReplyLocked(q); r != nil {
		defer u.mu.Unlock()
		u.resignLocked(w)
		return r
	}
	a, refused := u.admitLocked(q)
	before := u.blob.Size()
	u.mu.Unlock()

	var readErr, takeErr error
	if refused == nil {
		readErr, takeErr = u.receive(q, w, a, before)
	}

	u.mu.Lock()
	defer u.mu.Unlock()
	f := &q.fault.session
	overtaken := u.writer != w
	u.resignLocked(w)
	if r := u.closedReplyLocked(q); r != nil { // canceled meanwhile
		return r
	}
	switch {
	case f.hideFor > 0 && readErr != nil:
		u.hiddenAt, u.hiddenUntil = before, u.store.now().Add(f.hideFor)
	case refused == nil:
		u.hiddenUntil = time.Time{} // the later acknowledgement covers the earlier bytes
	}
	switch {
	case refused != nil:
		return u.mark(refused.reply(false))
	case overtaken, takeErr == errOvertaken:
		return u.mark(refuse(http.StatusServiceUnavailable, "backendError", "%v", errOvertaken).reply(false))
	case takeErr != nil:
		return u.mark(errInternal(takeErr).reply(false))
	case readErr != nil:
		return u.mark(refuse(http.StatusRequestTimeout, "uploadBrokenConnection", "The body ended early: %v", readErr).reply(false))
	}
	if u.blob.Size()%granularity != 0 {
		if err := u.saveLocked(); err != nil { // after a crash, multiples of 256 KiB are kept anyway
			return u.mark(errInternal(err).reply(false))
		}
	}
	if f.statusAfter != nil {
		return statusReply(f.statusAfter, false, u.store.now())
	}
	end := q.contentRange.first + q.in.received.Load()
	if n := q.contentRange.length(); n >= 0 && n != q.in.received.Load() || u.Total >= 0 && end > u.Total {
		return u.mark(textReply(http.StatusBadRequest, fmt.Sprintf("Invalid request.  The body has %d bytes, which is not what the Content-Range header says.", q.in.received.Load())))
	}
	if a.final && u.Total < 0 && u.blob.Size() == end {
		u.Total = end
	}
	if u.blob.Size() != u.Total || f.notFinal {
		return u.incompleteLocked(q)
	}
	return u.finalize(q)
}

// receive reads the body of a data request into the session, which has before bytes.
func (u *session) receive(q *request, w *writer, a admission, before int64) (readErr, takeErr error) {
	if a.skip > 0 {
		if _, err := io.CopyN(io.Discard, q.in, a.skip); err == io.EOF {
			return nil, nil // all of it was already committed
		} else if err != nil {
			return err, nil
		}
	}
	err := blob.ReadChunks(q.in, before, &u.store.buffers, func(p []byte) error {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.writer != w || u.State != active {
			u.store.buffers.Put(p)
			takeErr = errOvertaken
			return takeErr
		}
		keep := min(int64(len(p)), a.keep-u.blob.Size())
		if keep <= 0 {
			u.store.buffers.Put(p)
			return nil
		}
		takeErr = u.takeLocked(p[:keep], true)
		return takeErr
	})
	if takeErr != nil {
		return nil, takeErr
	}
	return err, nil
}
