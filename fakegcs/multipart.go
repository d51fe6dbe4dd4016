package fakegcs

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// XML API multipart uploads, https://cloud.google.com/storage/docs/multipart-uploads.

const (
	maxParts    = 10000
	minPartSize = 5 << 20 // of all but the last
)

// partsUpload is one multipart upload.
type partsUpload struct {
	ID        string
	Meta      Object
	Initiated time.Time

	mu    sync.Mutex // guards what follows
	ended bool       // completed or aborted
	parts map[int]*version
}

// partsRecord is its record in the directory; each part has its own.
type partsRecord struct {
	ID        string    `json:"id"`
	Meta      Object    `json:"meta"`
	Initiated time.Time `json:"initiated"`
}

// partTag is the entity tag of a part: of its MD5, or else of its crc32c.
func partTag(o *Object) string {
	if o.MD5 != nil {
		return `"` + hex.EncodeToString(o.MD5) + `"`
	}
	return `"` + o.CRC32C.String() + `"`
}

// onParts does the operations of multipart uploads.
func (s *Server) onParts(q *request) *reply {
	var (
		r   *reply
		err *apiError
	)
	switch q.op {
	case OpPartsStart:
		r, err = s.startParts(q)
	case OpPartsUploads:
		r, err = s.listUploads(q)
	default:
		var p *partsUpload
		if p, err = s.findParts(q); err != nil {
			break
		}
		switch q.op {
		case OpPartsPut:
			r, err = s.putPart(q, p)
		case OpPartsComplete:
			r, err = s.completeParts(q, p)
		case OpPartsAbort:
			r, err = s.abortParts(p)
		case OpPartsList:
			r, err = p.list(q)
		}
	}
	if err != nil {
		return err.reply(true)
	}
	return r
}

func (s *Server) startParts(q *request) (*reply, *apiError) {
	if err := s.hasBucket(q.bucket); err != nil {
		return nil, err
	}
	o, _, err := s.newXMLObject(q)
	if err != nil {
		return nil, err
	}
	p := &partsUpload{ID: base64.RawURLEncoding.EncodeToString(randomBytes(32)), Meta: *o, Initiated: s.now(), parts: map[int]*version{}}
	if err := s.disk.SaveMultipart(p.ID, partsRecord{ID: p.ID, Meta: p.Meta, Initiated: p.Initiated}); err != nil {
		return nil, errInternal(err)
	}
	s.mu.Lock()
	s.uploads[p.ID] = p
	s.mu.Unlock()
	return xmlReply(http.StatusOK, struct {
		XMLName               xml.Name `xml:"InitiateMultipartUploadResult"`
		Namespace             string   `xml:"xmlns,attr"`
		Bucket, Key, UploadId string
	}{Namespace: xmlNamespace, Bucket: o.Bucket, Key: o.Name, UploadId: p.ID}), nil
}

func errNoUpload() *apiError {
	return refuse(http.StatusNotFound, "noUpload", "The requested upload was not found.")
}

func (s *Server) findParts(q *request) (*partsUpload, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.uploads[q.query.Get("uploadId")]
	if p == nil || p.Meta.Bucket != q.bucket || p.Meta.Name != q.object {
		return nil, errNoUpload()
	}
	return p, nil
}

func (s *Server) putPart(q *request, p *partsUpload) (*reply, *apiError) {
	n, parseErr := strconv.Atoi(q.query.Get("partNumber"))
	if parseErr != nil || n < 1 || n > maxParts {
		return nil, invalid("Part number must be an integer between 1 and %d, inclusive.", maxParts)
	}
	var want checksums
	if err := want.addHeader(q.Header); err != nil {
		return nil, err
	}
	if err := mayRead(&p.Meta, q.Header, "x-goog-encryption-"); err != nil {
		return nil, err
	}
	content := s.newBlob()
	o := &Object{Updated: s.now()}
	err := s.fill(content, o, q.in)
	if err == nil {
		err = want.check(o)
	}
	if err == nil {
		err = s.addPart(p, n, &version{Object: o, blob: content})
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

// addPart puts a part in its place; the one that was there is gone.
func (s *Server) addPart(p *partsUpload, n int, part *version) *apiError {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return errNoUpload()
	}
	if err := s.disk.SavePart(p.ID, n, objectRecord{Object: part.Object, Blob: part.blob.ID()}); err != nil {
		return errInternal(err)
	}
	old := p.parts[n]
	p.parts[n] = part
	if old != nil {
		old.blob.Release()
	}
	return nil
}

func (s *Server) completeParts(q *request, p *partsUpload) (*reply, *apiError) {
	body, err := readMetadata(q.in)
	if err != nil {
		return nil, err
	}
	var ask struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Part    []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := xml.Unmarshal(body, &ask); err != nil {
		return nil, refuse(http.StatusBadRequest, "malformedCompleteMultipartUploadRequest", "The XML you provided was not well-formed: %v", err)
	}
	if len(ask.Part) == 0 {
		return nil, refuse(http.StatusBadRequest, "malformedCompleteMultipartUploadRequest", "The list of parts is empty.")
	}
	if err := mayRead(&p.Meta, q.Header, "x-goog-encryption-"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, errNoUpload()
	}
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
	o := p.Meta.clone()
	content := join(o, parts)
	cond, err := parseConditions(q.query, q.Header, "if")
	if err == nil {
		var made *Object
		if made, err = s.publishUpload(o, content, cond, p.ID, func(*Object) { s.removeParts(p) }); err == nil {
			s.endParts(p)
			r := xmlReply(http.StatusOK, struct {
				XMLName                     xml.Name `xml:"CompleteMultipartUploadResult"`
				Namespace                   string   `xml:"xmlns,attr"`
				Location, Bucket, Key, ETag string
			}{Namespace: xmlNamespace, Location: q.base() + "/" + made.Bucket + "/" + escapePath(made.Name), Bucket: made.Bucket, Key: made.Name, ETag: `"` + made.Etag + `"`})
			r.set("X-Goog-Generation", strconv.FormatInt(made.Generation, 10))
			if made.CustomerEncryption == nil {
				r.set("X-Goog-Hash", "crc32c="+q.shown(made).CRC32C.String())
			}
			return r, nil
		}
	}
	content.Release()
	return nil, err
}

func (s *Server) abortParts(p *partsUpload) (*reply, *apiError) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, errNoUpload()
	}
	s.removeParts(p)
	s.endParts(p)
	return newReply(http.StatusNoContent), nil
}

// removeParts takes an upload out of the directory.
func (s *Server) removeParts(p *partsUpload) {
	if err := s.disk.RemoveMultipart(p.ID); err != nil {
		s.log.Warn("fakegcs: remove multipart upload", "err", err)
	}
}

// endParts forgets an upload and lets its parts go; p.mu is held.
func (s *Server) endParts(p *partsUpload) {
	p.ended = true
	for _, part := range p.parts {
		part.blob.Release()
	}
	p.parts = nil
	s.mu.Lock()
	delete(s.uploads, p.ID)
	s.mu.Unlock()
}

type xmlPart struct {
	PartNumber   int
	LastModified string
	ETag         string
	Size         int64
}

func (p *partsUpload) list(q *request) (*reply, *apiError) {
	limit, refused := pageLimit(q, "max-parts")
	if refused != nil {
		return nil, refused
	}
	after := 0
	if v := q.query.Get("part-number-marker"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return nil, invalid("Invalid part-number-marker '%s'.", v)
		}
		after = n
	}
	out := struct {
		XMLName               xml.Name `xml:"ListPartsResult"`
		Namespace             string   `xml:"xmlns,attr"`
		Bucket, Key, UploadId string
		StorageClass          string
		PartNumberMarker      int
		NextPartNumberMarker  int
		MaxParts              int
		IsTruncated           bool
		Part                  []xmlPart
	}{Namespace: xmlNamespace, Bucket: q.bucket, Key: q.object, UploadId: p.ID, StorageClass: p.Meta.StorageClass, PartNumberMarker: after, MaxParts: limit}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(p.parts)) {
		if n <= after {
			continue
		}
		if len(out.Part) == limit {
			out.IsTruncated = true
			break
		}
		o := p.parts[n].Object
		out.Part = append(out.Part, xmlPart{n, o.Updated.Format(time.RFC3339Nano), partTag(o), o.Size})
		out.NextPartNumberMarker = n
	}
	return xmlReply(http.StatusOK, out), nil
}

type xmlUpload struct {
	Key, UploadId, StorageClass, Initiated string
}

// listUploads lists the multipart uploads of a bucket, sorted by key and
// upload id, https://cloud.google.com/storage/docs/xml-api/get-bucket-uploads.
func (s *Server) listUploads(q *request) (*reply, *apiError) {
	if err := s.hasBucket(q.bucket); err != nil {
		return nil, err
	}
	limit, err := pageLimit(q, "max-uploads")
	if err != nil {
		return nil, err
	}
	out := struct {
		XMLName            xml.Name `xml:"ListMultipartUploadsResult"`
		Namespace          string   `xml:"xmlns,attr"`
		Bucket             string
		Prefix             string `xml:",omitempty"`
		KeyMarker          string
		UploadIdMarker     string
		NextKeyMarker      string `xml:",omitempty"`
		NextUploadIdMarker string `xml:",omitempty"`
		MaxUploads         int
		IsTruncated        bool
		Upload             []xmlUpload
	}{
		Namespace: xmlNamespace, Bucket: q.bucket, Prefix: q.query.Get("prefix"), MaxUploads: limit,
		KeyMarker: q.query.Get("key-marker"), UploadIdMarker: q.query.Get("upload-id-marker"),
	}
	after := func(u xmlUpload) bool {
		// Without an id the marker is the whole key.
		return u.Key > out.KeyMarker || u.Key == out.KeyMarker && out.UploadIdMarker != "" && u.UploadId > out.UploadIdMarker
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.uploads {
		u := xmlUpload{p.Meta.Name, p.ID, p.Meta.StorageClass, p.Initiated.Format(time.RFC3339Nano)}
		if p.Meta.Bucket == q.bucket && strings.HasPrefix(u.Key, out.Prefix) && after(u) {
			out.Upload = append(out.Upload, u)
		}
	}
	slices.SortFunc(out.Upload, func(a, b xmlUpload) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.UploadId, b.UploadId))
	})
	if len(out.Upload) > limit {
		out.Upload, out.IsTruncated = out.Upload[:limit], true
		last := out.Upload[limit-1]
		out.NextKeyMarker, out.NextUploadIdMarker = last.Key, last.UploadId
	}
	return xmlReply(http.StatusOK, out), nil
}

// pageLimit is how many items a page may have: what the parameter says, at
// most 1000.
func pageLimit(q *request, param string) (int, *apiError) {
	v := q.query.Get(param)
	if v == "" {
		return 1000, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		return 0, invalid("Invalid %s '%s'.", param, v)
	}
	return min(n, 1000), nil
}
