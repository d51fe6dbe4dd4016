package fakegcs

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gcsup/fakegcs/internal/blob"
)

// start starts a session. It checks only that the bucket exists; preconditions are
// checked when the object is made.
func (s *sessions) start(q *request) *reply {
	if err := s.store.hasBucket(q.bucket); err != nil {
		return err.reply(q.xml)
	}
	given, err := q.newUpload(s.store.now())
	if err != nil {
		return err.reply(q.xml)
	}
	u, err := s.add(given)
	if err != nil {
		return err.reply(q.xml)
	}
	s.endByFault(&q.fault.session, u)
	r := newReply(http.StatusOK).set("Content-Type", "text/plain; charset=utf-8")
	path := "/upload/storage/v1/b/" + url.PathEscape(u.Meta.Bucket) + "/o"
	if u.XML {
		r.status = http.StatusCreated
		path = "/" + url.PathEscape(u.Meta.Bucket) + "/" + escapePath(u.Meta.Name)
	}
	r.set("Location", q.base()+path+"?"+u.uriQuery(q.URL.RawQuery))
	return u.mark(r)
}

// uriQuery returns the query of the session URI: that of the request in its order, with uploadType
// first and upload_id last. Clients use the URI unchanged.
func (u *session) uriQuery(asked string) string {
	var first, rest []string
	for param := range strings.SplitSeq(asked, "&") {
		switch name, _, _ := strings.Cut(param, "="); name {
		case "", "upload_id":
		case "uploadType":
			first = append(first, param)
		case "name":
			if !u.XML {
				rest = append(rest, "name="+url.QueryEscape(u.Meta.Name))
			}
		default:
			rest = append(rest, param)
		}
	}
	if !u.XML && !strings.Contains("&"+asked, "&name=") { // it was in the metadata
		first = append(first, "name="+url.QueryEscape(u.Meta.Name))
	}
	return strings.Join(append(append(first, rest...), "upload_id="+u.ID), "&")
}

// newUpload is what a client gives at the start of a session.
type newUpload struct {
	xml     bool
	meta    *Object
	want    checksums
	cond    conditions
	total   int64 // -1 unknown
	created time.Time
}

// newUpload returns what q gives, which starts a session.
func (q *request) newUpload(now time.Time) (newUpload, *apiError) {
	given := newUpload{xml: q.xml, total: -1, created: now}
	var err *apiError
	if given.meta, given.want, err = q.newObject(now); err != nil {
		return given, err
	}
	if given.cond, err = q.conditions(); err != nil {
		return given, err
	}
	if length := q.Header.Get("X-Upload-Content-Length"); length != "" {
		n, ok := parseOffset(length)
		if !ok {
			return given, invalid("Invalid value for X-Upload-Content-Length: '%s'.", length)
		}
		given.total = n
	}
	return given, nil
}

// add starts a session.
func (s *sessions) add(given newUpload) (*session, *apiError) {
	if err := s.store.checkACL(given.meta); err != nil {
		return nil, err
	}
	u := &session{store: s.store, sum: blob.NewDigest(&s.store.buffers, !s.store.opts.NoMD5)}
	u.ID, u.XML, u.Meta, u.Cond = newUploadID(), given.xml, *given.meta, given.cond
	u.Total, u.Created, u.CRC32C, u.MD5 = given.total, given.created, given.want.crc, given.want.md5
	u.blob = s.store.newBlob()
	u.BlobID = u.blob.ID()
	if err := u.saveLocked(); err != nil { // u is not shared yet
		u.blob.Release()
		return nil, errInternal(err)
	}
	s.mu.Lock()
	s.byID[u.ID] = u
	s.mu.Unlock()
	return u, nil
}

func newUploadID() string {
	var b [48]byte
	_, _ = rand.Read(b[:]) // never fails
	var text [64]byte
	base64.RawURLEncoding.Encode(text[:], b[:])
	return string(text[:])
}

// escapePath escapes an object name for an XML API path, in which "/" is not escaped.
func escapePath(name string) string {
	return strings.ReplaceAll(url.PathEscape(name), "%2F", "/")
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}
