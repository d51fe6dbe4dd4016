package session

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"gcsup/internal/checksum"
	"gcsup/session/internal/secret"
)

// Limits of a multipart upload of the XML API. Sizes are in bytes.
// https://cloud.google.com/storage/quotas#requests
const (
	MultipartMinPart  = 5 << 20 // minimum size of a part, except for the last one
	MultipartMaxPart  = 5 << 30 // maximum size of a part
	MultipartMaxParts = 10_000  // maximum number of parts, and the greatest part number
)

const uploadIDLimit = 1200 // bytes

// NotMultipart returns the reason why a multipart upload of the XML API does not
// support s, or "" if it does. Such an upload has no preconditions, and its object
// has no MD5. Metadata is sent in headers, where keys are in lower case and values
// are ASCII. https://cloud.google.com/storage/docs/xml-api/post-object-multipart
func (s Spec) NotMultipart() (why string) {
	switch {
	case s.Conditional():
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
	case s.Gzip:
		return "it is compressed"
	}
	for key, value := range s.Metadata {
		if key != strings.ToLower(key) || strings.ContainsFunc(key, notToken) || !isHeaderValue(value) {
			return fmt.Sprintf("a multipart upload cannot have the custom metadata %q", key)
		}
	}
	for _, value := range []string{s.contentType(), s.ContentEncoding, s.ContentDisposition, s.ContentLanguage, s.CacheControl, s.StorageClass} {
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

// UploadedPart is a part of a multipart upload, as the service has it.
type UploadedPart struct {
	Number int    `xml:"PartNumber"`     // from 1
	ETag   string `xml:"ETag"`           // as in the reply, with its quotes if there are any
	Size   int64  `xml:"Size,omitempty"` // bytes
}

// StartMultipart starts a multipart upload for the object of spec. If it succeeds, with status
// 200, Reply.URI identifies the upload, and is as secret as a session URI. If
// [Spec.NotMultipart] returns a reason, no request is made, and Reply.Err wraps [ErrInvalid].
//
// The service keeps the upload, and bills its parts, until CompleteMultipart or AbortMultipart.
// https://cloud.google.com/storage/docs/xml-api/post-object-multipart
func (c *Client) StartMultipart(ctx context.Context, spec Spec) Reply {
	if why := spec.NotMultipart(); why != "" {
		return unsent(OpMultipartStart, invalid("%s", why))
	}
	x := xmlCall(OpMultipartStart, "POST", spec)
	x.url = multipartURL(c, spec, "") + "?uploads"
	for name, value := range map[string]string{
		"Content-Type": spec.contentType(), "Content-Encoding": spec.ContentEncoding, "Content-Disposition": spec.ContentDisposition,
		"Content-Language": spec.ContentLanguage, "Cache-Control": spec.CacheControl, "X-Goog-Storage-Class": spec.StorageClass,
		"X-Goog-Encryption-Kms-Key-Name": spec.KMSKeyName, "X-Goog-Custom-Time": timeText(spec.CustomTime),
	} {
		if value != "" {
			x.header[name] = value
		}
	}
	for key, value := range spec.Metadata {
		x.header["X-Goog-Meta-"+key] = value
	}
	x.read = func(r *Reply, resp *http.Response) error {
		var started struct {
			XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
			UploadID string   `xml:"UploadId"`
		}
		if err := readXML(resp.Body, &started); err != nil {
			return err
		}
		if started.UploadID == "" || len(started.UploadID) > uploadIDLimit {
			return errors.New("the reply has no upload ID")
		}
		r.URI = secret.NewURI(multipartURL(c, spec, started.UploadID))
		return nil
	}
	return c.do(ctx, x)
}

// PutPart sends size bytes from body as the part with a number from 1. It replaces an earlier
// part with the same number. The service refuses bytes whose checksum is not crc32c. etag is ""
// unless the status of the reply is 200.
// https://cloud.google.com/storage/docs/xml-api/put-object-multipart
func (c *Client) PutPart(ctx context.Context, spec Spec, uri URI, number int, size int64, crc32c uint32, body io.Reader) (etag string, r Reply) {
	x := xmlCall(OpPart, "PUT", spec).to(uri, "&partNumber="+strconv.Itoa(number))
	x.header["X-Goog-Hash"] = "crc32c=" + checksum.Encode(crc32c)
	return putPart(ctx, c, x, size, body, func(stored uint32, reported bool) bool { return !reported || stored == crc32c })
}

// StreamPart is PutPart for bytes whose checksum is not known before they are read. The service stores
// whatever arrives, and its reply has the checksum of that. sent is called when there is a reply, and
// returns the checksum of the bytes that were sent, if all of them were. Unless both are the same,
// the reply counts as lost, Reply.Differs is set, and the part must be sent again or compared.
func (c *Client) StreamPart(ctx context.Context, spec Spec, uri URI, number int, size int64, sent func() (crc32c uint32, known bool), body io.Reader) (etag string, r Reply) {
	x := xmlCall(OpPart, "PUT", spec).to(uri, "&partNumber="+strconv.Itoa(number))
	return putPart(ctx, c, x, size, body, func(stored uint32, reported bool) bool {
		crc32c, known := sent()
		return reported && known && stored == crc32c
	})
}

// putPart sends a part. same gets the checksum in the reply, if there is one, and reports whether it is that of
// the part. If it is not, the error is not [ErrChecksum]: a stranger's reply is no damage.
func putPart(ctx context.Context, c *Client, x call, size int64, body io.Reader, same func(stored uint32, reported bool) bool) (etag string, r Reply) {
	x.body, x.length = body, size
	x.read = func(r *Reply, resp *http.Response) error {
		stored, reported := hashHeader(resp.Header, "X-Goog-Hash")
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
	r = c.do(ctx, x)
	r.Sent = min(r.Sent, size)
	return etag, r
}

// ValidETag reports whether etag can be that of a part.
func ValidETag(etag string) bool { return etag != "" && len(etag) <= 256 && isHeaderValue(etag) }

// ListParts returns one page of the parts that the service has, whose numbers are greater than
// after, in ascending order. more reports that there are further pages. parts is valid only if
// the status of the reply is 200.
// https://cloud.google.com/storage/docs/xml-api/get-object-multipart
func (c *Client) ListParts(ctx context.Context, spec Spec, uri URI, after int) (parts []UploadedPart, more bool, r Reply) {
	parameters := ""
	if after > 0 {
		parameters = "&part-number-marker=" + strconv.Itoa(after)
	}
	x := xmlCall(OpParts, "GET", spec).to(uri, parameters)
	x.read = func(_ *Reply, resp *http.Response) (err error) {
		parts, more, err = readParts(resp.Body, after)
		return err
	}
	r = c.do(ctx, x)
	return parts, more, r
}

// readParts reads a page of parts. It returns an error unless their numbers ascend from after.
func readParts(body io.Reader, after int) (parts []UploadedPart, more bool, err error) {
	var page struct {
		XMLName     xml.Name `xml:"ListPartsResult"`
		IsTruncated bool
		Part        []UploadedPart
	}
	if err := readXML(body, &page); err != nil {
		return nil, false, err
	}
	for _, p := range page.Part {
		if p.Number <= after || p.Number > MultipartMaxParts || p.Size < 0 || !ValidETag(p.ETag) {
			return nil, false, errors.New("the list of parts is not valid")
		}
		after = p.Number
	}
	if page.IsTruncated && len(page.Part) == 0 {
		return nil, false, errors.New("the list of parts is truncated but empty")
	}
	return page.Part, page.IsTruncated, nil
}

// CompleteMultipart makes the object from parts, which must be in the order of their
// numbers. It has no preconditions. If the status of the reply is 200, its Object has
// the bucket, the name, the size, and, if the reply has them, the generation and the
// CRC32C. If the reply is lost, the object may exist, and the upload may no longer
// exist. https://cloud.google.com/storage/docs/xml-api/post-object-complete
func (c *Client) CompleteMultipart(ctx context.Context, spec Spec, uri URI, parts []UploadedPart) Reply {
	var body struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Part    []UploadedPart
	}
	size := int64(0)
	for _, p := range parts {
		body.Part = append(body.Part, UploadedPart{Number: p.Number, ETag: p.ETag})
		size += p.Size
	}
	data, err := xml.Marshal(body)
	if err != nil {
		return unsent(OpComplete, err)
	}
	x := xmlCall(OpComplete, "POST", spec).to(uri, "")
	x.header["Content-Type"] = "application/xml"
	x.body, x.length = bytes.NewReader(data), int64(len(data))
	x.read = func(r *Reply, resp *http.Response) error {
		var made struct {
			XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
		}
		if err := readXML(resp.Body, &made); err != nil {
			return err // the body may have an error, which the service sent after the status 200
		}
		r.Object = &Object{Bucket: spec.Bucket, Name: spec.Object, Size: size}
		r.Object.Generation, _ = strconv.ParseInt(resp.Header.Get("X-Goog-Generation"), 10, 64)
		r.Object.CRC32C, r.Object.HasCRC32C = hashHeader(resp.Header, "X-Goog-Hash")
		return nil
	}
	return c.do(ctx, x)
}

// AbortMultipart aborts a multipart upload, and the service deletes its parts. The status is 204
// if it succeeds. An upload that does not exist was completed or aborted.
// https://cloud.google.com/storage/docs/xml-api/delete-multipart
func (c *Client) AbortMultipart(ctx context.Context, spec Spec, uri URI) Reply {
	return c.do(ctx, xmlCall(OpAbort, "DELETE", spec).to(uri, ""))
}

// xmlCall returns a call to the XML API, without its URL.
func xmlCall(op Op, method string, spec Spec) call {
	x := call{op: op, method: method, header: map[string]string{}, readError: (*Reply).readXMLError}
	if spec.UserProject != "" {
		x.header["X-Goog-User-Project"] = spec.UserProject
	}
	return x
}

// multipartURL returns the URL of the object of spec in the XML API, with the upload ID unless it
// is "".
func multipartURL(c *Client, spec Spec, id string) string {
	return c.url(url.Values{"uploadId": {id}}, spec.Bucket, spec.Object)
}

// AdoptMultipart checks the URI of a multipart upload from a saved upload of spec, as Adopt
// does for a session URI.
func (c *Client) AdoptMultipart(uri URI, spec Spec) error {
	u, err := url.Parse(secret.Reveal(uri))
	if err != nil || u.Query().Get("uploadId") == "" || secret.Reveal(uri) != multipartURL(c, spec, u.Query().Get("uploadId")) {
		return fmt.Errorf("%w: not a multipart upload of %s at %s", ErrURIMismatch, spec.URL(), c.Endpoint())
	}
	return nil
}

// readXMLError sets r from the XML error in the body of a reply. Its Message is the text of
// the code, such as "Access denied.". Only its Details name the principal, the permission or
// the object, and are optional.
// https://cloud.google.com/storage/docs/xml-api/reference-status
func (r *Reply) readXMLError(scrub func(string) string, resp *http.Response) {
	var e struct {
		XMLName                xml.Name `xml:"Error"`
		Code, Message, Details string
	}
	isError := readXML(resp.Body, &e) == nil && e.Code != ""
	text := e.Message
	if e.Details != "" && e.Details != text { // first, because ObjectRateLimit needs its beginning
		text = e.Details + " (" + strings.TrimSuffix(e.Message, ".") + ")"
	}
	r.setError(scrub, resp, isError, e.Code, text)
	if r.Reason == "SlowDown" {
		r.Reason = "rateLimitExceeded" // as the JSON API names it
	}
}

// readXML reads a reply of the XML API, of at most objectLimit bytes.
func readXML(body io.Reader, v any) error {
	text, err := io.ReadAll(io.LimitReader(body, objectLimit))
	if err != nil {
		return err
	}
	if err := xml.Unmarshal(text, v); err != nil {
		return fmt.Errorf("the reply is not XML of the service: %w", err)
	}
	return nil
}
