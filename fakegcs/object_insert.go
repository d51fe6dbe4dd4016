package fakegcs

import (
	"io"
	"mime/multipart"
	"net/http"
	"strings"
)

// insert uploads an object in one request.
func (a objectAPI) insert(q *request) *reply {
	o, err := a.insertObject(q)
	if err != nil {
		return err.reply(q.xml)
	}
	if q.xml {
		return q.writtenReply(o)
	}
	return objectReply(http.StatusOK, q.resource(o))
}

func (a objectAPI) insertObject(q *request) (*Object, *apiError) {
	if err := a.hasBucket(q.bucket); err != nil {
		return nil, err
	}
	cond, err := q.conditions()
	if err != nil {
		return nil, err
	}
	var (
		o     *Object
		want  checksums
		parts *multipart.Reader
		media io.Reader = q.in
	)
	switch {
	case q.xml:
		o, want, err = q.newXMLObject(a.now())
	case q.query.Get("uploadType") == "multipart":
		parts, media, o, want, err = a.openRelated(q)
	default:
		o = &Object{ContentType: q.Header.Get("Content-Type")}
		if err = want.addHeader(q.Header); err != nil {
			break
		}
		if err = q.address(o, a.now()); err != nil {
			err = err.ofMetadata() // the service does this without a multipart body, too
		}
	}
	if err != nil {
		return nil, err
	}
	content := a.newBlob()
	if err := a.fill(content, o, media); err != nil {
		content.Release()
		return nil, err
	}
	err = want.check(o)
	if err == nil && parts != nil {
		err = checkLater(q, parts, o)
	}
	var published *Object
	if err == nil {
		published, err = a.publish(o, content, cond)
	}
	if err != nil {
		content.Release()
		return nil, err
	}
	return published, nil
}

// checkLater compares o with the checksums of a multipart upload that are not in its
// metadata: those in a part after the media, and those in the header.
func checkLater(q *request, parts *multipart.Reader, o *Object) *apiError {
	var end, header checksums
	if err := trailer(parts, &end); err != nil {
		return err
	}
	if err := header.addHeader(q.Header); err != nil {
		return err
	}
	if err := end.check(o); err != nil {
		return err
	}
	return header.check(o)
}

// openRelated reads a multipart upload up to its media,
// https://cloud.google.com/storage/docs/uploading-objects#rest-upload-objects.
func (a objectAPI) openRelated(q *request) (*multipart.Reader, io.Reader, *Object, checksums, *apiError) {
	fail := func(err *apiError) (*multipart.Reader, io.Reader, *Object, checksums, *apiError) {
		return nil, nil, nil, checksums{}, err
	}
	kind := q.Header.Get("Content-Type")
	boundary := multipartBoundary(kind)
	if boundary == "" {
		return fail(refuse(http.StatusBadRequest, "badContent", "Unsupported content with type: %s", kind))
	}
	parts := multipart.NewReader(q.in, boundary)
	first, err := parts.NextRawPart()
	if err != nil {
		return fail(refuse(http.StatusBadRequest, "badContent", "Malformed multipart body: %v", err))
	}
	data, refused := readMetadata(first)
	if refused != nil {
		return fail(refused)
	}
	o, want, refused := decodeObject(data)
	if refused != nil {
		return fail(refused.ofMetadata())
	}
	media, err := parts.NextRawPart()
	if err == io.EOF {
		return fail(refuse(http.StatusBadRequest, "invalidPayloadSize", "Payload size invalid. Expected 2-3 payloads. Actual size: 1"))
	}
	if err != nil {
		return fail(refuse(http.StatusBadRequest, "badContent", "Malformed multipart body: %v", err))
	}
	if refused := o.setType(media.Header.Get("Content-Type")); refused != nil {
		return fail(refused)
	}
	if refused := q.address(o, a.now()); refused != nil {
		return fail(refused.ofMetadata())
	}
	return parts, media, o, want, nil
}

// multipartBoundary returns the boundary of a multipart content type, or "". Unlike
// [mime.ParseMediaType] it accepts the single quotes that gcloud and gsutil send.
func multipartBoundary(contentType string) string {
	kind, rest, _ := strings.Cut(contentType, ";")
	if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(kind)), "multipart/") {
		return ""
	}
	for rest != "" {
		rest = strings.TrimLeft(rest, " \t;")
		name, value, ok := strings.Cut(rest, "=")
		if !ok {
			return ""
		}
		if value == "" {
			return ""
		}
		quoted := ""
		if value[0] == '"' || value[0] == '\'' {
			if quoted, _, ok = strings.Cut(value[1:], value[:1]); !ok {
				return ""
			}
			rest = value[len(quoted)+2:]
		} else {
			quoted, rest, _ = strings.Cut(value, ";")
			quoted = strings.TrimSpace(quoted)
		}
		if strings.EqualFold(strings.TrimSpace(name), "boundary") {
			return quoted
		}
	}
	return ""
}

// trailer reads the optional part with checksums after the media. It fails if the
// closing boundary is missing, because the body was then cut off.
func trailer(parts *multipart.Reader, want *checksums) *apiError {
	malformed := func(err error) *apiError {
		return refuse(http.StatusBadRequest, "badContent", "Malformed multipart body: %v", err)
	}
	for {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return malformed(err)
		}
		data, refused := readMetadata(part)
		if refused != nil {
			return refused
		}
		_, later, refused := decodeObject(data)
		if refused != nil {
			return refused
		}
		if later.crc != nil {
			want.crc = later.crc
		}
		if later.md5 != nil {
			want.md5 = later.md5
		}
	}
}
