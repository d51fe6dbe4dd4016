package fakegcs

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/ops"
)

// XML API multipart uploads, https://cloud.google.com/storage/docs/multipart-uploads.

const (
	maxParts    = 10000
	minPartSize = 5 << 20 // of all parts except the last
)

// multiparts are the multipart uploads of a server, and make objects in its store.
type multiparts struct {
	store *store
	mu    sync.Mutex // may be locked while an upload is
	byID  map[string]*multipartUpload
	ended []*endedUpload // the latest ones
}

// endedUpload is an upload that was completed or aborted. The service answers a repetition of the
// request that ended it, for a time that it does not document:
// https://github.com/getsentry/objectstore/pull/575.
type endedUpload struct {
	id, bucket, object string
	by                 faults.Op // OpPartsComplete or OpPartsAbort
	reply              *reply
}

// keepEnded is how many ended uploads are remembered.
const keepEnded = 1000

// multipartRecord is the record of an upload in the directory. Each part has its
// own.
type multipartRecord struct {
	ID        string    `json:"id"`
	Meta      Object    `json:"meta"` // of the object that it will make
	Initiated time.Time `json:"initiated"`
}

// multipartUpload is one multipart upload.
type multipartUpload struct {
	multipartRecord
	mu    sync.Mutex // guards the fields below
	ended bool       // completed or aborted
	parts map[int]*version
}

// newMultipart returns an upload without parts.
func newMultipart(r multipartRecord) *multipartUpload {
	return &multipartUpload{multipartRecord: r, parts: map[int]*version{}}
}

// partTag returns the entity tag of a part: of its MD5, or else of its crc32c.
func partTag(o *Object) string {
	if o.MD5 != nil {
		return `"` + hex.EncodeToString(o.MD5) + `"`
	}
	return `"` + o.CRC32C.String() + `"`
}

// answer processes a request for multipart uploads.
func (m *multiparts) answer(q *request) *reply {
	var (
		r   *reply
		err *apiError
	)
	switch q.op {
	case faults.OpPartsStart:
		r, err = m.start(q)
	case ops.PartsUploads:
		r, err = m.list(q)
	default:
		var p *multipartUpload
		if p, r, err = m.find(q); p == nil {
			break
		}
		switch q.op {
		case faults.OpPartsPut:
			r, err = m.putPart(q, p)
		case faults.OpPartsComplete:
			r, err = m.complete(q, p)
		case faults.OpPartsAbort:
			r, err = m.abort(q, p)
		case faults.OpPartsList:
			r, err = p.list(q)
		}
	}
	if err != nil {
		return err.reply(true)
	}
	return r
}

func (m *multiparts) start(q *request) (*reply, *apiError) {
	if err := m.store.hasBucket(q.bucket); err != nil {
		return nil, err
	}
	o, _, err := q.newXMLObject(m.store.now())
	if err != nil {
		return nil, err
	}
	p := newMultipart(multipartRecord{base64.RawURLEncoding.EncodeToString(randomBytes(32)), *o, m.store.now()})
	if err := m.store.disk.SaveMultipart(p.ID, p.multipartRecord); err != nil {
		return nil, errInternal(err)
	}
	m.mu.Lock()
	m.byID[p.ID] = p
	m.mu.Unlock()
	return xmlReply(http.StatusOK, struct {
		XMLName     xml.Name `xml:"InitiateMultipartUploadResult"`
		Namespace   string   `xml:"xmlns,attr"`
		Bucket, Key string
		UploadID    string `xml:"UploadId"`
	}{Namespace: multipartNamespace, Bucket: o.Bucket, Key: o.Name, UploadID: p.ID}), nil
}

func errNoUpload() *apiError {
	return refuse(http.StatusNotFound, "noUpload", "The requested upload was not found.")
}

// find returns the upload that q names, or the reply if q repeats the request that ended it.
func (m *multiparts) find(q *request) (*multipartUpload, *reply, *apiError) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := q.query.Get("uploadId")
	if p := m.byID[id]; p != nil && p.Meta.Bucket == q.bucket && p.Meta.Name == q.object {
		return p, nil, nil
	}
	for _, e := range m.ended {
		if e.id == id && e.bucket == q.bucket && e.object == q.object && e.by == q.op {
			return nil, e.reply.clone(), nil
		}
	}
	return nil, nil, errNoUpload()
}

func (m *multiparts) putPart(q *request, p *multipartUpload) (*reply, *apiError) {
	n, parseErr := strconv.Atoi(q.query.Get("partNumber"))
	if parseErr != nil || n < 1 || n > maxParts {
		return nil, invalid("Part number must be an integer between 1 and %d, inclusive.", maxParts)
	}
	var want checksums
	if err := want.addHeader(q.Header); err != nil {
		return nil, err
	}
	if err := checkRead(&p.Meta, q.Header, "X-Goog-Encryption-"); err != nil {
		return nil, err
	}
	content := m.store.newBlob()
	o := &Object{Updated: m.store.now()}
	err := m.store.fill(content, o, q.in)
	if err == nil {
		err = want.check(o)
	}
	if err == nil {
		err = m.addPart(p, n, &version{Object: o, blob: content})
	}
	if err != nil {
		content.Release()
		return nil, err
	}
	r := newReply(http.StatusOK).set("Etag", partTag(o))
	for _, h := range q.shown(o).hashes() {
		r.header.Add("X-Goog-Hash", h)
	}
	return r, nil
}

// addPart adds part number n, or replaces it.
func (m *multiparts) addPart(p *multipartUpload, n int, part *version) *apiError {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return errNoUpload()
	}
	if err := m.store.disk.SavePart(p.ID, n, objectRecord{Object: part.Object, Blob: part.blob.ID()}); err != nil {
		return errInternal(err)
	}
	old := p.parts[n]
	p.parts[n] = part
	if old != nil {
		old.blob.Release()
	}
	return nil
}

type completeRequest struct {
	XMLName xml.Name `xml:"CompleteMultipartUpload"`
	Part    []struct {
		PartNumber int
		ETag       string
	}
}

func (m *multiparts) complete(q *request, p *multipartUpload) (*reply, *apiError) {
	body, err := readMetadata(q.in)
	if err != nil {
		return nil, err
	}
	var ask completeRequest
	if err := xml.Unmarshal(body, &ask); err != nil {
		return nil, refuse(http.StatusBadRequest, "malformedCompleteMultipartUploadRequest", "The XML you provided was not well-formed: %v", err)
	}
	if len(ask.Part) == 0 {
		return nil, refuse(http.StatusBadRequest, "malformedCompleteMultipartUploadRequest", "The list of parts is empty.")
	}
	if err := checkRead(&p.Meta, q.Header, "X-Goog-Encryption-"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended { // meanwhile
		_, r, err := m.find(q)
		return r, err
	}
	parts, err := p.choose(ask)
	if err != nil {
		return nil, err
	}
	o := p.Meta.clone()
	content := join(o, parts)
	// The service ignores preconditions here, https://github.com/kmoneil/zig-gcp/blob/main/docs/storage/transfers.md.
	made, err := m.store.publishUpload(o, content, conditions{}, p.ID, func(*Object) { m.removeRecord(p) })
	if err != nil {
		content.Release()
		return nil, err
	}
	r := xmlReply(http.StatusOK, struct {
		XMLName                     xml.Name `xml:"CompleteMultipartUploadResult"`
		Namespace                   string   `xml:"xmlns,attr"`
		Location, Bucket, Key, ETag string
	}{Namespace: multipartNamespace, Location: q.base() + "/" + made.Bucket + "/" + escapePath(made.Name), Bucket: made.Bucket, Key: made.Name, ETag: made.xmlTag()})
	r.set("X-Goog-Generation", strconv.FormatInt(made.Generation, 10))
	if made.CustomerEncryption == nil {
		if !q.fault.object.omitHash {
			r.set("X-Goog-Hash", "crc32c="+q.shown(made).CRC32C.String())
		}
	}
	m.end(p, &endedUpload{by: q.op, reply: r.clone()})
	return r, nil
}

// choose returns the parts that ask lists. The caller holds p.mu.
func (p *multipartUpload) choose(ask completeRequest) ([]*version, *apiError) {
	for i := 1; i < len(ask.Part); i++ {
		if ask.Part[i].PartNumber <= ask.Part[i-1].PartNumber {
			return nil, refuse(http.StatusBadRequest, "invalidPartOrder", "The list of parts was not in ascending order. Parts must be ordered by part number.")
		}
	}
	var parts []*version
	for i, a := range ask.Part {
		part := p.parts[a.PartNumber]
		switch {
		case part == nil || strings.Trim(a.ETag, `"`) != strings.Trim(partTag(part.Object), `"`):
			return nil, refuse(http.StatusBadRequest, "invalidPart", "The requested upload part was not found. It may not have been uploaded, or the specified entity tag may not match the part's.")
		case i < len(ask.Part)-1 && part.Size < minPartSize:
			return nil, refuse(http.StatusBadRequest, "entityTooSmall", "Your proposed upload is smaller than the minimum allowed size: part %d has %d bytes, all but the last need %d.", a.PartNumber, part.Size, minPartSize)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func (m *multiparts) abort(q *request, p *multipartUpload) (*reply, *apiError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended { // meanwhile
		_, r, err := m.find(q)
		return r, err
	}
	m.removeRecord(p)
	r := newReply(http.StatusNoContent)
	m.end(p, &endedUpload{by: q.op, reply: r.clone()})
	return r, nil
}

// removeRecord removes an upload from the directory.
func (m *multiparts) removeRecord(p *multipartUpload) {
	if err := m.store.disk.RemoveMultipart(p.ID); err != nil {
		m.store.log.Warn("fakegcs: remove multipart upload", "err", err)
	}
}

// end removes an upload and releases its parts. It remembers by, which is nil if no request ended the
// upload. The caller holds p.mu.
func (m *multiparts) end(p *multipartUpload, by *endedUpload) {
	p.ended = true
	for _, part := range p.parts {
		part.blob.Release()
	}
	p.parts = nil
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byID, p.ID)
	if by == nil {
		return
	}
	by.id, by.bucket, by.object = p.ID, p.Meta.Bucket, p.Meta.Name
	if len(m.ended) == keepEnded {
		m.ended = slices.Delete(m.ended, 0, 1)
	}
	m.ended = append(m.ended, by)
}
