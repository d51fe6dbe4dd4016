package fakegcs

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gcsup/fakegcs/internal/blob"
	"gcsup/fakegcs/internal/strictjson"
)

// Resumable uploads, https://cloud.google.com/storage/docs/performing-resumable-uploads:
// what each request on a session does. The session itself is in session.go.

// maxObject is the size limit of an object, https://cloud.google.com/storage/quotas#objects.
const maxObject = 5 << 40

// start begins a session. Nothing about the destination is checked except that
// the bucket is there: preconditions are for the last request.
func (s *Server) start(q *request) *reply {
	if err := s.hasBucket(q.bucket); err != nil {
		return err.reply(q.xml)
	}
	u, err := s.newSession(q)
	if err != nil {
		return err.reply(q.xml)
	}
	if q.fault.Is(EffectGone) || q.fault.Is(EffectNotFound) || q.fault.Is(EffectCancelled) {
		s.strike(q.fault, u)
	}
	// The service echoes the request's query; clients take the URI as it is.
	values := cloneValues(q.query)
	values.Set("upload_id", u.ID)
	r := newReply(http.StatusOK).set("Content-Type", "text/plain; charset=utf-8")
	path := "/upload/storage/v1/b/" + url.PathEscape(u.Meta.Bucket) + "/o"
	if u.XML {
		r.status = http.StatusCreated
		path = "/" + url.PathEscape(u.Meta.Bucket) + "/" + escapePath(u.Meta.Name)
	} else {
		values.Set("name", u.Meta.Name)
	}
	r.set("Location", q.base()+path+"?"+values.Encode())
	return u.mark(r)
}

func cloneValues(v url.Values) url.Values {
	c := url.Values{}
	for k := range v {
		c[k] = v[k]
	}
	return c
}

// escapePath escapes an object name for an XML API path, where "/" stays.
func escapePath(name string) string {
	return strings.ReplaceAll(url.PathEscape(name), "%2F", "/")
}

func (s *Server) newSession(q *request) (*session, *apiError) {
	u := &session{sum: blob.NewDigest(&s.buffers, !s.opts.NoMD5)}
	u.ID = newUploadID()
	u.XML, u.Total, u.Created = q.xml, -1, s.now()
	meta, want, err := s.newObject(q)
	if err != nil {
		return nil, err
	}
	u.Meta, u.CRC32C, u.MD5 = *meta, want.crc, want.md5
	if u.Cond, err = parseConditions(q.query, q.Header, "if"); err != nil {
		return nil, err
	}
	if length := q.Header.Get("X-Upload-Content-Length"); length != "" {
		n, ok := parseOffset(length)
		if !ok {
			return nil, invalid("Invalid value for X-Upload-Content-Length: '%s'.", length)
		}
		u.Total = n
	}
	u.blob = s.newBlob()
	u.BlobID = u.blob.ID()
	if err := s.saveLocked(u); err != nil { // nobody else knows u yet
		u.blob.Release()
		return nil, errInternal(err)
	}
	s.mu.Lock()
	s.sessions[u.ID] = u
	s.mu.Unlock()
	return u, nil
}

func newUploadID() string { return base64.RawURLEncoding.EncodeToString(randomBytes(48)) }

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

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
	if s.strike(q.fault, u) && q.fault.Is(EffectNotFound) {
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

// strike ends a session where a fault says so, and reports whether it did. A
// finished session stays finished.
func (s *Server) strike(a *Action, u *session) bool {
	switch {
	case a.Is(EffectNotFound):
		s.forget(u)
		return true
	case a.Is(EffectGone), a.Is(EffectCancelled):
	default:
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.State != active {
		return false
	}
	state, cause := cancelled, (*apiError)(nil)
	if a.Effect == EffectGone {
		state, cause = dead, faultCause(a)
	}
	return s.endLocked(u, state, cause) == nil
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
	// Without a Content-Length, as HTTP/2 allows, only reading tells.
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
	if !complete || q.fault.Is(EffectNotFinal) {
		return s.incompleteLocked(q, u)
	}
	if u.Total >= 0 && u.Total != total {
		return textReply(http.StatusBadRequest, totalChanged(u.Total, total))
	}
	u.Total = total
	return s.finalize(q, u)
}

func totalChanged(was, is int64) string {
	return fmt.Sprintf("Invalid request.  The total size of the upload was given as %d bytes, now the Content-Range header says %d.", was, is)
}

// admission is what a data request may do.
type admission struct {
	skip  int64 // bytes of the body that are there already
	keep  int64 // offset up to which its bytes are kept
	final bool  // it may complete the upload
}

// admitLocked holds a data request against the rules of offsets and sizes. The
// texts are the service's own where it is known to have one.
func (s *Server) admitLocked(q *request, u *session) (admission, *apiError) {
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
		// A body whose end nobody announced may have more than there is room for.
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
		if n < quantum {
			u.Poison = fmt.Sprintf("Invalid request.  The number of bytes uploaded is required to be equal or greater than 262144, except for the final request (it's recommended to be the exact multiple of 262144).  The received request contained %d bytes, which does not meet this requirement.", n)
			if err := s.saveLocked(u); err != nil {
				return a, errInternal(err)
			}
			return bad("%s", u.Poison)
		}
		a.keep = (c.last + 1) / quantum * quantum
	}
	if u.Total != total {
		u.Total = total
		if err := s.saveLocked(u); err != nil {
			return a, errInternal(err)
		}
	}
	switch {
	case q.fault.Is(EffectShortCommit):
		a.keep = min(a.keep, c.first+max(q.ContentLength, 0)-q.fault.Bytes)
	case q.fault.Is(EffectStatusAfter):
		a.keep = min(a.keep, q.fault.Bytes)
	}
	return a, nil
}

var errOvertaken = errors.New("another request took this upload session over")

// put takes in a data request.
func (s *Server) put(q *request, u *session) *reply {
	w, claimErr := s.claim(q, u)
	if claimErr != nil {
		return claimErr.reply(false)
	}
	u.mu.Lock()
	if r := s.closedReplyLocked(q, u); r != nil {
		defer u.mu.Unlock()
		u.resignLocked(w)
		return r
	}
	a, refused := s.admitLocked(q, u)
	before := u.blob.Size()
	u.mu.Unlock()

	var readErr, takeErr error
	if refused == nil {
		readErr, takeErr = s.receive(q, u, w, a, before)
	}

	u.mu.Lock()
	defer u.mu.Unlock()
	overtaken := u.writer != w
	u.resignLocked(w)
	if r := s.closedReplyLocked(q, u); r != nil { // cancelled meanwhile
		return r
	}
	switch {
	case q.fault.Is(EffectLateCommit) && readErr != nil:
		u.hiddenAt, u.hiddenUntil = before, s.now().Add(q.fault.For)
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
	if u.blob.Size()%quantum != 0 {
		if err := s.saveLocked(u); err != nil { // a crash keeps whole quanta by itself
			return u.mark(errInternal(err).reply(false))
		}
	}
	if q.fault.Is(EffectStatusAfter) {
		return statusReply(q.fault, false, s.now())
	}
	end := q.contentRange.first + q.in.received.Load()
	if n := q.contentRange.length(); n >= 0 && n != q.in.received.Load() || u.Total >= 0 && end > u.Total {
		return u.mark(textReply(http.StatusBadRequest, fmt.Sprintf("Invalid request.  The body has %d bytes, which is not what the Content-Range header says.", q.in.received.Load())))
	}
	if a.final && u.Total < 0 && u.blob.Size() == end {
		u.Total = end
	}
	if u.blob.Size() != u.Total || q.fault.Is(EffectNotFinal) {
		return s.incompleteLocked(q, u)
	}
	return s.finalize(q, u)
}

// receive reads the body of a data request into the session, which holds
// before bytes.
func (s *Server) receive(q *request, u *session, w *writer, a admission, before int64) (readErr, takeErr error) {
	if a.skip > 0 {
		if _, err := io.CopyN(io.Discard, q.in, a.skip); err == io.EOF {
			return nil, nil // all of it was there already
		} else if err != nil {
			return err, nil
		}
	}
	err := blob.ReadQuanta(q.in, before, &s.buffers, func(p []byte) error {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.writer != w || u.State != active {
			s.buffers.Put(p)
			takeErr = errOvertaken
			return takeErr
		}
		keep := min(int64(len(p)), a.keep-u.blob.Size())
		if keep <= 0 {
			s.buffers.Put(p)
			return nil
		}
		takeErr = s.takeLocked(u, p[:keep], true)
		return takeErr
	})
	if takeErr != nil {
		return nil, takeErr
	}
	return err, nil
}

// finalize makes the object; u.mu is held. On failure the session is dead,
// because nothing can bring it to a good end any more; only an internal error
// leaves it alone.
func (s *Server) finalize(q *request, u *session) *reply {
	if q.fault.Is(EffectSlowFinalize) {
		u.mu.Unlock()
		s.pause(q, q.fault.For)
		u.mu.Lock()
		if r := s.closedReplyLocked(q, u); r != nil {
			return r // another request was faster
		}
		if u.blob.Size() != u.Total { // a fault took bytes away meanwhile
			return s.incompleteLocked(q, u)
		}
	}
	fail := func(cause *apiError) *reply {
		if cause.status != http.StatusInternalServerError {
			if err := s.endLocked(u, dead, cause); err != nil {
				cause = err
			}
		}
		return u.mark(cause.reply(u.XML))
	}
	o := u.Meta.clone()
	o.Size, o.CRC32C, o.MD5 = u.blob.Size(), CRC32C(u.sum.CRC32C()), u.sum.MD5()
	var last checksums // what the last request declares, beside what the first did
	if err := last.addHeader(q.Header); err != nil {
		return fail(err)
	}
	for _, want := range []checksums{{u.CRC32C, u.MD5}, last} {
		if err := want.check(o); err != nil {
			return fail(err)
		}
	}
	if !u.XML { // https://cloud.google.com/storage/docs/resumable-uploads: metadata may come with the last request
		o.Metadata = addMetadataHeaders(o.Metadata, q.Header, "X-Goog-Meta-")
		if err := checkMetadata(o.Metadata); err != nil {
			return fail(err)
		}
	}
	if _, err := s.publishUpload(o, u.blob, u.Cond, u.ID, func(made *Object) {
		u.Object = made
		_ = s.endLocked(u, final, nil) // never fails
	}); err != nil {
		return fail(err)
	}
	return s.finishedReply(q, u)
}

// pause waits for d, or until the request or the server ends.
func (s *Server) pause(q *request, d time.Duration) { s.wait(q, d, nil) }

// declared is the metadata body of an upload: an object resource whose
// checksums are demands.
type declared struct {
	Object
	CRC32C *CRC32C `json:"crc32c"`
	MD5    []byte  `json:"md5Hash"`
}

// objectInput are the fields that the metadata of an upload may have.
var objectInput = strings.Fields("bucket cacheControl contentDisposition contentEncoding contentLanguage contentType contexts crc32c customTime eventBasedHold kmsKeyName md5Hash metadata name " +
	"retention storageClass temporaryHold")

func decodeObject(data []byte) (*Object, checksums, *apiError) {
	var d declared
	if len(data) > 0 {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(data, &fields); err != nil {
			return nil, checksums{}, refuse(http.StatusBadRequest, "parseError", "Parse Error: %v", err)
		}
		for name, raw := range fields {
			if slices.Contains(objectInput, name) {
				continue
			}
			if err := unkept("object", name, raw, objectOutput, objectMissing); err != nil {
				return nil, checksums{}, err
			}
			delete(fields, name)
		}
		kept, err := json.Marshal(fields)
		if err == nil {
			err = strictjson.Decode(kept, &d)
		}
		if err != nil {
			return nil, checksums{}, refuse(http.StatusBadRequest, "parseError", "Parse Error: %v", err)
		}
	}
	o := d.Object
	class, err := storageClass(o.StorageClass)
	if err != nil {
		return nil, checksums{}, err
	}
	return &Object{
		Bucket: o.Bucket, Name: o.Name, ContentType: o.ContentType, ContentEncoding: o.ContentEncoding, ContentDisposition: o.ContentDisposition,
		ContentLanguage: o.ContentLanguage, CacheControl: o.CacheControl, StorageClass: class, Metadata: o.Metadata, Contexts: o.Contexts,
		TemporaryHold: o.TemporaryHold, EventBasedHold: o.EventBasedHold, Retention: o.Retention, CustomTime: o.CustomTime, KMSKeyName: o.KMSKeyName,
	}, checksums{d.CRC32C, d.MD5}, nil
}
