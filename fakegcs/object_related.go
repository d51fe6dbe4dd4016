package fakegcs

import (
	"bytes"
	"io"

	"gcsup/fakegcs/internal/blob"
)

// relatedParts are the parts of a multipart upload that is in memory as a whole.
type relatedParts struct {
	metadata  []byte
	mediaType string
	media     []byte
}

// The longest boundary, https://www.rfc-editor.org/rfc/rfc2046#section-5.1.1, and the most lines
// of a part's header that readRelated knows. Package mime/multipart has limits, too.
const (
	maxBoundary  = 70
	maxPartLines = 20
)

// readRelated reads the body of q to its end if it has at most 256 KiB, and parses it.
// The caller returns buffer to the pool when it no longer needs the parts. ok is false
// for a body that is larger, broken, or has another form than two plain parts. The
// bytes that were read are then in the body again. A small upload thereby needs no
// reader of package mime/multipart, which costs more than the rest.
func (q *request) readRelated(boundary string, pool *blob.Pool) (parts relatedParts, buffer []byte, ok bool) {
	if boundary == "" || len(boundary) > maxBoundary || q.ContentLength < 0 || q.ContentLength > granularity {
		return parts, nil, false
	}
	buffer = pool.Get()
	n, err := io.ReadFull(q.in, buffer[:q.ContentLength])
	body := buffer[:n]
	if err == nil {
		parts, ok = parseRelated(body, boundary)
	}
	if !ok {
		q.in.unread(body)
	}
	return parts, buffer, ok
}

// parseRelated parses the body of a multipart upload. ok is false if it is not two
// parts, a delimiter before each and at the end, and headers of one line each. The line
// break after the last delimiter can be missing, as in package mime/multipart and in
// https://www.rfc-editor.org/rfc/rfc2046#section-5.1.1.
func parseRelated(body []byte, boundary string) (p relatedParts, ok bool) {
	delimiter := "\r\n--" + boundary
	if body, ok = bytes.CutPrefix(body, []byte(delimiter[len("\r\n"):])); !ok {
		return p, false
	}
	if _, body, ok = cutPartHeader(body); !ok {
		return p, false
	}
	if p.metadata, body, ok = cutPart(body, delimiter); !ok {
		return p, false
	}
	mediaType, body, ok := cutPartHeader(body)
	if !ok {
		return p, false
	}
	p.mediaType = string(mediaType)
	if p.media, body, ok = cutPart(body, delimiter); !ok {
		return p, false
	}
	return p, string(body) == "--\r\n" || string(body) == "--"
}

// cutPart returns the content of a part, and what follows the delimiter after it.
func cutPart(body []byte, delimiter string) (part, rest []byte, ok bool) {
	if bytes.HasPrefix(body, []byte(delimiter[len("\r\n"):])) { // the end of an empty part, without its line break
		return nil, nil, false
	}
	return bytes.Cut(body, []byte(delimiter))
}

// cutPartHeader removes the header of a part, from the end of the delimiter before it to
// the empty line, and returns its content type.
func cutPartHeader(part []byte) (contentType, rest []byte, ok bool) {
	if part, ok = bytes.CutPrefix(part, []byte("\r\n")); !ok {
		return nil, nil, false
	}
	typed := false
	for range maxPartLines {
		var line []byte
		if line, part, ok = bytes.Cut(part, []byte("\r\n")); !ok {
			return nil, nil, false
		}
		if len(line) == 0 {
			return contentType, part, true
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !partHeaderName(name) || !partHeaderValue(value) {
			return nil, nil, false
		}
		if !typed && bytes.EqualFold(name, []byte("Content-Type")) {
			contentType, typed = bytes.TrimSpace(value), true
		}
	}
	return nil, nil, false
}

// partHeaderName reports whether name is a usual name of a header.
func partHeaderName(name []byte) bool {
	for i := range len(name) {
		if c := name[i] | 0x20; (c < 'a' || c > 'z') && name[i] != '-' {
			return false
		}
	}
	return len(name) > 0
}

// partHeaderValue reports whether value is printable ASCII without backslashes.
func partHeaderValue(value []byte) bool {
	for _, c := range value {
		if c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return true
}
