// Package multipart makes the requests of multipart uploads, which are part of the XML API. Several connections can send
// the parts of one object. Each function makes one exchange, and does not wait or retry.
// https://cloud.google.com/storage/docs/multipart-uploads
package multipart

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gcsup/internal/checksum"
	"gcsup/internal/objectmeta"
	"gcsup/session"
)

// Limits of a multipart upload. Sizes are in bytes.
// https://cloud.google.com/storage/quotas#requests
const (
	MinPart  = 5 << 20 // minimum size of a part, except for the last one
	MaxPart  = 5 << 30 // maximum size of a part
	MaxParts = 10_000  // maximum number of parts, and the greatest part number
)

// Ops of the exchanges of this package.
const (
	OpStart    session.Op = "multipart-start" // open a multipart upload
	OpPart     session.Op = "part"            // one part
	OpList     session.Op = "parts"           // list the parts that the service has
	OpComplete session.Op = "complete"        // make an object from the parts
	OpAbort    session.Op = "abort"           // end the upload and drop its parts
)

const (
	uploadIDLimit = 1200    // bytes
	bodyLimit     = 1 << 20 // of a reply
)

// Unsupported returns the reason why a multipart upload does not support s, or "" if
// it does. Such an upload has no preconditions, and its object has no MD5. Metadata is sent in headers, where keys are in lower case and values
// are ASCII. https://cloud.google.com/storage/docs/xml-api/post-object-multipart
func Unsupported(s session.Spec) (why string) {
	switch {
	case len(s.Conditions()) > 0:
		return "a multipart upload has no preconditions"
	case s.MD5 != nil:
		return "an object of a multipart upload has no MD5"
	case s.TemporaryHold || s.EventBasedHold:
		return "a multipart upload sets no hold"
	case s.Retention != nil:
		return "a multipart upload sets no retention"
	case s.Contexts != nil:
		return "a multipart upload sets no contexts"
	case len(s.ACL) > 0 || s.PredefinedACL != "":
		return "a multipart upload sets no ACL"
	case !s.EncryptionKey.IsZero():
		return "it has a customer-supplied encryption key"
	}
	for key, value := range s.Metadata {
		if key != strings.ToLower(key) || strings.ContainsFunc(key, objectmeta.NotToken) || !isHeaderValue(value) {
			return fmt.Sprintf("a multipart upload cannot have the custom metadata %q", key)
		}
	}
	for _, value := range []string{s.Resolved().ContentType, s.ContentEncoding, s.ContentDisposition, s.ContentLanguage, s.CacheControl, s.StorageClass} {
		if !isHeaderValue(value) {
			return fmt.Sprintf("a multipart upload cannot have the attribute %q", value)
		}
	}
	return ""
}

// isHeaderValue reports whether a header transmits value unchanged.
func isHeaderValue(value string) bool {
	return strings.TrimSpace(value) == value && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}

// Part is a part of a multipart upload, as the service has it.
type Part struct {
	Number int    `xml:"PartNumber"`     // from 1
	ETag   string `xml:"ETag"`           // as in the reply, with its quotes if there are any
	Size   int64  `xml:"Size,omitempty"` // bytes
}

// Start starts a multipart upload for the object of spec. If it succeeds, with status 200,
// Reply.URI identifies the upload, and is as secret as a session URI. If [Unsupported] returns
// a reason, no request is made, and Reply.Err wraps [session.ErrInvalid].
//
// The service keeps the upload, and bills its parts, until Complete or Abort.
// https://cloud.google.com/storage/docs/xml-api/post-object-multipart
func Start(ctx context.Context, c *session.Client, spec session.Spec) session.Reply {
	if why := Unsupported(spec); why != "" {
		return unsent(OpStart, fmt.Errorf("%w: %s", session.ErrInvalid, why))
	}
	x := exchange(OpStart, http.MethodPost, spec)
	x.Path, x.Query = []string{spec.Bucket, spec.Object}, "uploads"
	encoding, customTime := spec.ContentEncoding, ""
	if spec.Gzip {
		encoding = "gzip"
	}
	if !spec.CustomTime.IsZero() {
		customTime = spec.CustomTime.UTC().Format(time.RFC3339Nano)
	}
	for name, value := range map[string]string{
		"Content-Type": spec.Resolved().ContentType, "Content-Encoding": encoding, "Content-Disposition": spec.ContentDisposition,
		"Content-Language": spec.ContentLanguage, "Cache-Control": spec.CacheControl, "X-Goog-Storage-Class": spec.StorageClass,
		"X-Goog-Encryption-Kms-Key-Name": spec.KMSKeyName, "X-Goog-Custom-Time": customTime,
	} {
		if value != "" {
			x.Header[name] = value
		}
	}
	for key, value := range spec.Metadata {
		x.Header["X-Goog-Meta-"+key] = value
	}
	x.Opened = func(resp *http.Response) (string, error) {
		var started struct {
			XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
			UploadID string   `xml:"UploadId"`
		}
		if err := readXML(resp.Body, &started); err != nil {
			return "", err
		}
		if started.UploadID == "" || len(started.UploadID) > uploadIDLimit {
			return "", errors.New("the reply has no upload ID")
		}
		return URL(c.Endpoint(), spec, started.UploadID), nil
	}
	return c.Do(ctx, x)
}

// URL returns the URL of a multipart upload to the object of spec. The ID is a secret.
func URL(endpoint string, spec session.Spec, id string) string {
	return endpoint + "/" + url.PathEscape(spec.Bucket) + "/" + url.PathEscape(spec.Object) + "?" + url.Values{"uploadId": {id}}.Encode()
}

// PutPart sends size bytes from body as the part with a number from 1. It replaces an earlier
// part with the same number. The service refuses bytes whose checksum is not crc32c. etag is ""
// unless the status of the reply is 200.
// https://cloud.google.com/storage/docs/xml-api/put-object-multipart
func PutPart(ctx context.Context, c *session.Client, spec session.Spec, uri session.URI, number int, size int64, crc32c uint32, body io.Reader) (etag string, r session.Reply) {
	x := partExchange(spec, uri, number)
	x.Header["X-Goog-Hash"] = "crc32c=" + checksum.Encode(crc32c)
	return putPart(ctx, c, x, size, body, func(stored uint32, reported bool) bool { return !reported || stored == crc32c })
}

// StreamPart is PutPart for bytes whose checksum is not known before they are read. The service stores
// whatever arrives, and its reply has the checksum of that. sent is called when there is a reply, and
// returns the checksum of the bytes that were sent, if all of them were. Unless both are the same,
// the reply counts as lost, Reply.Differs is set, and the part must be sent again or compared.
func StreamPart(ctx context.Context, c *session.Client, spec session.Spec, uri session.URI, number int, size int64, sent func() (crc32c uint32, known bool), body io.Reader) (etag string, r session.Reply) {
	x := partExchange(spec, uri, number)
	return putPart(ctx, c, x, size, body, func(stored uint32, reported bool) bool {
		crc32c, known := sent()
		return reported && known && stored == crc32c
	})
}

// partExchange returns the request for a part, without its body.
func partExchange(spec session.Spec, uri session.URI, number int) session.Exchange {
	x := exchange(OpPart, http.MethodPut, spec)
	x.URI, x.Query = uri, "partNumber="+strconv.Itoa(number)
	return x
}

// putPart sends a part. same gets the checksum in the reply, if there is one, and reports whether it is that of
// the part. If it is not, the error is not [session.ErrChecksum]: a stranger's reply is no damage.
func putPart(ctx context.Context, c *session.Client, x session.Exchange, size int64, body io.Reader, same func(stored uint32, reported bool) bool) (etag string, r session.Reply) {
	x.Data, x.Size = body, size
	x.Read = func(r *session.Reply, resp *http.Response) error {
		stored, reported := objectmeta.CRC32C(resp.Header, "X-Goog-Hash")
		switch r.Differs = !same(stored, reported); {
		case r.Differs && reported:
			return errors.New("the checksum in the reply is that of other bytes")
		case r.Differs:
			return errors.New("the reply has no checksum")
		}
		made := resp.Header.Get("ETag")
		if !ValidETag(made) {
			return errors.New("the reply has no valid ETag of a part")
		}
		etag = made
		return nil
	}
	r = c.Do(ctx, x)
	return etag, r
}

// ValidETag reports whether etag can be that of a part.
func ValidETag(etag string) bool { return etag != "" && len(etag) <= 256 && isHeaderValue(etag) }

// List returns one page of the parts that the service has, whose numbers are greater than
// after, in ascending order. more reports that there are further pages. parts is valid only if
// the status of the reply is 200.
// https://cloud.google.com/storage/docs/xml-api/get-object-multipart
func List(ctx context.Context, c *session.Client, spec session.Spec, uri session.URI, after int) (parts []Part, more bool, r session.Reply) {
	x := exchange(OpList, http.MethodGet, spec)
	x.URI = uri
	if after > 0 {
		x.Query = "part-number-marker=" + strconv.Itoa(after)
	}
	x.Read = func(_ *session.Reply, resp *http.Response) (err error) {
		parts, more, err = readParts(resp.Body, after)
		return err
	}
	r = c.Do(ctx, x)
	return parts, more, r
}

// readParts reads a page of parts. It returns an error unless their numbers ascend from after.
func readParts(body io.Reader, after int) (parts []Part, more bool, err error) {
	var page struct {
		XMLName     xml.Name `xml:"ListPartsResult"`
		IsTruncated bool
		Part        []Part
	}
	if err := readXML(body, &page); err != nil {
		return nil, false, err
	}
	for _, p := range page.Part {
		if p.Number <= after || p.Number > MaxParts || p.Size < 0 || !ValidETag(p.ETag) {
			return nil, false, errors.New("the list of parts is not valid")
		}
		after = p.Number
	}
	if page.IsTruncated && len(page.Part) == 0 {
		return nil, false, errors.New("the list of parts is truncated but empty")
	}
	return page.Part, page.IsTruncated, nil
}

// Complete makes the object from parts, which must be in the order of their
// numbers. It has no preconditions. If the status of the reply is 200, its Object has
// the bucket, the name, the size, and, if the reply has them, the generation and the
// CRC32C. If the reply is lost, the object may exist, and the upload may no longer
// exist. https://cloud.google.com/storage/docs/xml-api/post-object-complete
func Complete(ctx context.Context, c *session.Client, spec session.Spec, uri session.URI, parts []Part) session.Reply {
	var body struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Part    []Part
	}
	size := int64(0)
	for _, p := range parts {
		body.Part = append(body.Part, Part{Number: p.Number, ETag: p.ETag})
		size += p.Size
	}
	data, err := xml.Marshal(body)
	if err != nil {
		return unsent(OpComplete, err)
	}
	x := exchange(OpComplete, http.MethodPost, spec)
	x.URI, x.Content, x.Header["Content-Type"] = uri, data, "application/xml"
	x.Read = func(r *session.Reply, resp *http.Response) error {
		var made struct {
			XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
		}
		if err := readXML(resp.Body, &made); err != nil {
			return err // the body may have an error, which the service sent after the status 200
		}
		r.Object = &session.Object{Bucket: spec.Bucket, Name: spec.Object, Size: size}
		r.Object.Generation, _ = strconv.ParseInt(resp.Header.Get("X-Goog-Generation"), 10, 64)
		r.Object.CRC32C, r.Object.HasCRC32C = objectmeta.CRC32C(resp.Header, "X-Goog-Hash")
		return nil
	}
	return c.Do(ctx, x)
}

// Abort aborts a multipart upload, and the service deletes its parts. The status is 204
// if it succeeds. An upload that does not exist was completed or aborted.
// https://cloud.google.com/storage/docs/xml-api/delete-multipart
func Abort(ctx context.Context, c *session.Client, spec session.Spec, uri session.URI) session.Reply {
	x := exchange(OpAbort, http.MethodDelete, spec)
	x.URI = uri
	return c.Do(ctx, x)
}

// exchange returns a request of the XML API, without its URL.
func exchange(op session.Op, method string, spec session.Spec) session.Exchange {
	x := session.Exchange{Op: op, Method: method, Header: map[string]string{}, ReadError: readError}
	if spec.UserProject != "" {
		x.Header["X-Goog-User-Project"] = spec.UserProject
	}
	return x
}

// unsent returns the reply to a request that was not sent because of err.
func unsent(op session.Op, err error) session.Reply {
	return session.Reply{Op: op, Committed: -1, Err: err}
}

// readError reads the XML error in the body of a reply. Its Message is the text of
// the code, such as "Access denied.". Only its Details name the principal, the permission or
// the object, and are optional.
// https://cloud.google.com/storage/docs/xml-api/reference-status
func readError(body io.Reader) (reason, message string) {
	var e struct {
		XMLName                xml.Name `xml:"Error"`
		Code, Message, Details string
	}
	if readXML(body, &e) != nil {
		return "", ""
	}
	text := e.Message
	if e.Details != "" && e.Details != text { // first, because ObjectRateLimit needs its beginning
		text = e.Details + " (" + strings.TrimSuffix(e.Message, ".") + ")"
	}
	if e.Code == "SlowDown" {
		return "rateLimitExceeded", text // as the JSON API names it
	}
	return e.Code, text
}

// readXML reads a reply of the XML API, of at most bodyLimit bytes.
func readXML(body io.Reader, v any) error {
	text, err := io.ReadAll(io.LimitReader(body, bodyLimit))
	if err != nil {
		return err
	}
	if err := xml.Unmarshal(text, v); err != nil {
		return fmt.Errorf("the reply is not XML of the service: %w", err)
	}
	return nil
}
