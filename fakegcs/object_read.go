package fakegcs

import (
	"cmp"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"

	"gcsup/fakegcs/internal/blob"
)

// objectAPI processes the requests for objects, except for resumable and multipart
// uploads.
type objectAPI struct{ *store }

// get returns an object's metadata: as JSON, or as the headers of an XML HEAD.
func (a objectAPI) get(q *request) *reply {
	v, err := a.lookup(q)
	if err != nil {
		return err.reply(q.xml)
	}
	defer v.blob.Release()
	key, err := encryptionKey(q.Header, "X-Goog-Encryption-")
	if err == nil {
		err = checkKey(key, v.Object)
	}
	switch {
	case err != nil:
		return err.reply(q.xml)
	case q.xml:
		r := newReply(http.StatusOK)
		q.objectHeaders(r, v.Object)
		r.length = v.Size
		return r
	}
	return objectReply(http.StatusOK, q.resource(v.Object).withoutChecksums(key))
}

// lookup finds the generation that a request names and checks its
// preconditions. The caller releases the blob.
func (a objectAPI) lookup(q *request) (*version, *apiError) {
	generation, cond, err := q.target()
	if err != nil {
		return nil, err
	}
	if q.flag("softDeleted") {
		return a.findSoftDeleted(q.bucket, q.object, generation)
	}
	v, err := a.find(q.bucket, q.object, generation)
	if err != nil {
		return nil, err
	}
	err = cond.check(v.Object)
	if err == nil {
		err = q.tagConditions().check(q.tag(v.Object))
	}
	if err != nil {
		v.blob.Release()
		return nil, err
	}
	return v, nil
}

// tag returns the entity tag of an object in the API of q.
func (q *request) tag(o *Object) string {
	if q.xml {
		return o.xmlTag()
	}
	return o.Etag
}

// objectHeaders adds the headers that describe an object to the reply to q,
// https://cloud.google.com/storage/docs/xml-api/reference-headers.
func (q *request) objectHeaders(r *reply, o *Object) {
	o = q.shown(o)
	r.set("Content-Type", cmp.Or(o.ContentType, "application/octet-stream"))
	for name, value := range map[string]string{
		"Cache-Control": o.CacheControl, "Content-Disposition": o.ContentDisposition,
		"Content-Encoding": o.ContentEncoding, "Content-Language": o.ContentLanguage,
	} {
		if value != "" {
			r.set(name, value)
		}
	}
	encoding := cmp.Or(o.ContentEncoding, "identity")
	if encoding == "identity" {
		r.header.Del("Content-Encoding")
	}
	r.set("Accept-Ranges", "bytes")
	r.set("Etag", o.xmlTag())
	r.set("Last-Modified", o.Updated.UTC().Format(http.TimeFormat))
	r.set("X-Goog-Generation", strconv.FormatInt(o.Generation, 10))
	r.set("X-Goog-Metageneration", strconv.FormatInt(o.Metageneration, 10))
	r.set("X-Goog-Stored-Content-Encoding", encoding)
	r.set("X-Goog-Stored-Content-Length", strconv.FormatInt(o.Size, 10))
	r.set("X-Goog-Storage-Class", o.StorageClass)
	if q.fault.object.omitSize {
		r.header.Del("X-Goog-Stored-Content-Length")
	}
	if e := o.CustomerEncryption; e != nil {
		r.set("X-Goog-Encryption-Algorithm", e.EncryptionAlgorithm)
		r.set("X-Goog-Encryption-Key-Sha256", e.KeySHA256)
	}
	if o.KMSKeyName != "" {
		r.set("X-Goog-Encryption-Kms-Key-Name", o.KMSKeyName)
	}
	if o.ContentEncoding == "gzip" { // the bytes depend on it
		r.set("Vary", "Accept-Encoding")
	}
	if o.ComponentCount > 0 {
		r.set("X-Goog-Component-Count", strconv.Itoa(o.ComponentCount))
	}
	for _, h := range o.hashes() {
		if !q.fault.object.omitHash {
			r.header.Add("X-Goog-Hash", h)
		}
	}
	for k, v := range o.Metadata {
		r.set("X-Goog-Meta-"+k, v)
	}
}

// writtenReply returns the reply of the XML API to a request that made o.
func (q *request) writtenReply(o *Object) *reply {
	r := newReply(http.StatusOK)
	q.objectHeaders(r, o)
	for _, name := range []string{"Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Last-Modified", "Vary", "X-Goog-Storage-Class"} {
		r.header.Del(name)
	}
	for name := range r.header {
		if strings.HasPrefix(name, "X-Goog-Meta-") {
			r.header.Del(name)
		}
	}
	return r.set("Content-Type", "text/html; charset=UTF-8")
}

// mediaHeaders changes the headers of an object's bytes to those of the JSON API.
func (q *request) mediaHeaders(r *reply, o *Object) {
	r.header.Del("Accept-Ranges")
	r.set("Etag", o.Etag)
	r.set("X-Goog-Hash", strings.Join(q.shown(o).hashes(), ","))
	if o.ContentDisposition == "" {
		r.set("Content-Disposition", "attachment")
	}
}

// read returns an object's bytes, or the part that a Range header selects.
func (a objectAPI) read(q *request) *reply {
	v, refused := a.lookup(q)
	if refused != nil {
		return refused.mediaReply(q.xml)
	}
	fail := func(e *apiError) *reply {
		v.blob.Release()
		return e.mediaReply(q.xml)
	}
	if err := checkRead(v.Object, q.Header, "X-Goog-Encryption-"); err != nil {
		if q.xml && err.reason == "resourceIsEncryptedWithCustomerEncryptionKey" {
			err.message = "The requested object is encrypted by a customer-supplied encryption key."
		}
		return fail(err)
	}
	r := newReply(http.StatusOK)
	q.objectHeaders(r, v.Object)
	if !q.xml {
		q.mediaHeaders(r, v.Object)
	}
	from, to := int64(0), v.Size
	unzip := v.ContentEncoding == "gzip" && !acceptsGzip(q.Header) && !strings.Contains(v.CacheControl, "no-transform")
	if spec := q.Header.Get("Range"); spec != "" && !unzip {
		var ok, valid bool
		from, to, ok, valid = parseByteRange(spec, v.Size)
		switch {
		case !valid: // an invalid Range is ignored, RFC 9110, section 14.2
			from, to = 0, v.Size
		case !ok:
			e := refuse(http.StatusRequestedRangeNotSatisfiable, "requestedRangeNotSatisfiable", "Request range not satisfiable")
			if !q.xml {
				return fail(e).set("Content-Range", "bytes */"+strconv.FormatInt(v.Size, 10))
			}
			e.message = spec
			refused := fail(e)
			r.status, r.body = refused.status, refused.body
			return r.set("Content-Type", refused.header.Get("Content-Type"))
		case q.xml && from == 0 && to == v.Size: // the whole object
		default:
			r.status = http.StatusPartialContent
			if !q.xml {
				r.header.Del("X-Goog-Hash")
			}
			r.set("Content-Range", "bytes "+strconv.FormatInt(from, 10)+"-"+strconv.FormatInt(to-1, 10)+"/"+strconv.FormatInt(v.Size, 10))
		}
	}
	section, err := v.blob.Section(from, to)
	if err != nil {
		if err == blob.ErrDiscarded {
			return fail(errUnimplemented("reading objects in discard mode"))
		}
		return fail(errInternal(err))
	}
	r.stream, r.length = &released{section, v.blob}, to-from
	if unzip {
		// Decompressive transcoding, https://cloud.google.com/storage/docs/transcoding:
		// the hashes and the stored length are those of the compressed bytes.
		z, err := gzip.NewReader(section)
		if err != nil {
			_ = r.stream.Close()
			return invalid("The object has Content-Encoding gzip but is not gzip: %v", err).mediaReply(q.xml)
		}
		r.stream, r.length = &unzipped{z, r.stream}, -1
		r.header.Del("Content-Encoding")
		r.header.Del("Accept-Ranges")
		r.set("Etag", "W/"+r.header.Get("Etag"))
		r.set("Warning", "214 UploadServer gunzipped")
		r.set("X-Guploader-Response-Body-Transformations", "gunzipped")
	}
	return r
}

func acceptsGzip(h http.Header) bool {
	return strings.Contains(strings.ToLower(strings.Join(h.Values("Accept-Encoding"), ",")), "gzip")
}

// released releases its blob when it is closed.
type released struct {
	io.ReadCloser
	blob *blob.Blob
}

func (r *released) Close() error {
	err := r.ReadCloser.Close()
	r.blob.Release()
	return err
}

type unzipped struct {
	io.Reader
	under io.Closer
}

func (u *unzipped) Close() error { return u.under.Close() }

// parseByteRange parses a Range header for an object of the given size into
// [from, to). valid is false for a header that must be ignored; ok is false
// for a range without bytes.
func parseByteRange(spec string, size int64) (from, to int64, ok, valid bool) {
	spec, found := strings.CutPrefix(spec, "bytes=")
	first, last, dash := strings.Cut(spec, "-")
	if !found || !dash || strings.Contains(spec, ",") {
		return 0, 0, false, false
	}
	if first == "" { // the last n bytes
		n, valid := parseOffset(last)
		if !valid {
			return 0, 0, false, false
		}
		return max(0, size-n), size, n > 0 && size > 0, true
	}
	from, valid = parseOffset(first)
	if !valid {
		return 0, 0, false, false
	}
	to = size
	if last != "" {
		n, valid := parseOffset(last)
		if !valid || n < from {
			return 0, 0, false, false
		}
		to = min(size, n+1)
	}
	return from, to, from < size, true
}
