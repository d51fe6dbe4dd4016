package fakegcs

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// reply is the reply of a handler. Handlers return it, and only [Server.send]
// writes it, so that faults can cut, delay or lose any reply.
type reply struct {
	status int
	header http.Header
	body   []byte
	// stream, if set, replaces body. length is its size, or -1 if unknown.
	stream io.ReadCloser
	length int64
	// foreign is set if the reply imitates a proxy between the client and the
	// service.
	foreign bool
	missing string // the feature that is not implemented, see errUnimplemented
}

func newReply(status int) *reply {
	return &reply{status: status, header: http.Header{}}
}

func (r *reply) set(key, value string) *reply {
	r.header.Set(key, value)
	return r
}

// clone returns a copy of r, which must have no stream.
func (r *reply) clone() *reply {
	c := *r
	c.header = r.header.Clone()
	return &c
}

// mark adds the headers that the upload servers send with every reply.
func (r *reply) mark(id string) *reply {
	r.header["Server"] = uploadServer
	return r.set("X-Guploader-Uploadid", id)
}

// truncate shortens the body to n bytes, with a matching Content-Length.
func (r *reply) truncate(n int64) {
	if r.stream == nil {
		r.body = r.body[:min(int64(len(r.body)), n)]
		return
	}
	whole := r.stream
	r.stream = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(whole, n), whole}
	if r.length >= 0 {
		r.length = min(r.length, n)
	}
}

// textReply returns a plain text reply, as the upload servers send for errors.
func textReply(status int, body string) *reply {
	r := newReply(status).set("Content-Type", "text/plain; charset=utf-8")
	r.body = []byte(body)
	return r
}

// encode marshals v without HTML escapes, as the service does.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return buf.Bytes(), err
}

func jsonReply(status int, v any) *reply {
	r := newReply(status).set("Content-Type", "application/json; charset=UTF-8")
	body, err := encode(v)
	if err != nil { // cannot happen: v is a type of this package
		return (&apiError{status: http.StatusInternalServerError, reason: "internalError", message: err.Error()}).reply(false)
	}
	r.body = body
	return r
}

// objectReply is jsonReply for an object. Its entity tag is that of the resource.
func objectReply(status int, o objectResource) *reply {
	body, ok := o.appendJSON(make([]byte, 0, 1024))
	if !ok {
		return jsonReply(status, o).set("Etag", o.Etag)
	}
	r := newReply(status).set("Etag", o.Etag)
	r.header["Content-Type"], r.body = jsonType, body
	return r
}

func xmlReply(status int, v any) *reply {
	r := newReply(status).set("Content-Type", "application/xml; charset=UTF-8")
	body, err := xml.Marshal(v)
	if err != nil {
		return textReply(http.StatusInternalServerError, err.Error())
	}
	r.body = append([]byte(`<?xml version='1.0' encoding='UTF-8'?>`), body...)
	return r
}

// apiError is an error reply. The reasons are those of
// https://cloud.google.com/storage/docs/json_api/v1/status-codes.
type apiError struct {
	status  int
	reason  string // of the JSON API, or a more precise one, see jsonReason
	message string
	text    bool   // reply with text/plain instead of JSON, as the upload servers do
	missing string // see errUnimplemented
	// inMetadata is set for an error of the metadata in a multipart body, which the service
	// sends as JSON with the type of HTML.
	inMetadata bool
}

func (e *apiError) Error() string { return e.message }

func refuse(status int, reason, format string, args ...any) *apiError {
	return &apiError{status: status, reason: reason, message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) *apiError {
	return refuse(http.StatusBadRequest, "invalid", format, args...)
}

func errRequired(parameter string) *apiError {
	return refuse(http.StatusBadRequest, "required", "Required parameter: %s", parameter)
}

// ofMetadata marks an error of the metadata in a multipart body.
func (e *apiError) ofMetadata() *apiError {
	e.inMetadata = true
	return e
}

// serviceText is an error whose text is that of the service.
type serviceText string

func (t serviceText) Error() string { return string(t) }

type jsonError struct {
	Error jsonErrorBody `json:"error"`
}

type jsonErrorBody struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Errors  []jsonErrorItem `json:"errors"`
}

type jsonErrorItem struct {
	Message      string `json:"message"`
	Domain       string `json:"domain"`
	Reason       string `json:"reason"`
	LocationType string `json:"locationType,omitempty"`
	Location     string `json:"location,omitempty"`
}

type xmlError struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
	Message string
	Details string `xml:",omitempty"`
}

// reply returns the error as a reply of the XML or the JSON API.
func (e *apiError) reply(asXML bool) *reply {
	var r *reply
	switch {
	case e.status == http.StatusNotModified: // no body
		r = newReply(e.status)
	case e.text:
		r = textReply(e.status, e.message)
	case asXML:
		r = xmlReply(e.status, e.xml())
	default:
		item := jsonErrorItem{Message: e.message, Domain: domain(e.reason), Reason: jsonReason(e.reason)}
		if e.reason == "conditionNotMet" {
			item.LocationType, item.Location = "header", "If-Match"
		}
		r = jsonReply(e.status, jsonError{jsonErrorBody{Code: e.status, Message: e.message, Errors: []jsonErrorItem{item}}})
	}
	if e.inMetadata {
		r.set("Content-Type", "text/html; charset=UTF-8")
	}
	r.missing = e.missing
	if e.status == http.StatusUnauthorized {
		r.set("WWW-Authenticate", `Bearer realm="https://accounts.google.com/"`)
	}
	return r
}

// xml returns the body of the error in the XML API. The message is the text of the code, and only
// the details say more: internal/compat/recorded.
func (e *apiError) xml() xmlError {
	x := xmlError{Code: xmlCode(e.reason), Message: e.message}
	text := xmlMessages[x.Code]
	if e.reason == "bucketRateLimitExceeded" {
		text = "You have exceeded your bucket's IO capacity. Please follow the request rate and access distribution guidelines at https://cloud.google.com/storage/docs/conformance in order to avoid temporary limits on your bucket."
	}
	if text != "" && text != e.message {
		x.Message, x.Details = text, e.message
	}
	return x
}

// xmlMessages are the texts of error codes. Those from NoSuchKey to ResourceIsEncrypted… were
// recorded, SlowDown in https://github.com/nextcloud/server/issues/12537, and the others follow
// https://cloud.google.com/storage/docs/xml-api/reference-status. Other codes have only
// the specific text, because no recording shows them.
var xmlMessages = map[string]string{
	"NoSuchKey":          "The specified key does not exist.",
	"AccessDenied":       "Access denied.",
	"InvalidRange":       "The requested range cannot be satisfied.",
	"UserProjectMissing": "Bucket is a requester pays bucket but no user project provided.",
	"ResourceIsEncryptedWithCustomerEncryptionKey": "The resource is encrypted with a customer encryption key.",
	"SlowDown":               "Please reduce your request rate.",
	"NoSuchBucket":           "The specified bucket does not exist.",
	"PreconditionFailed":     "At least one of the pre-conditions you specified did not hold.",
	"InvalidArgument":        "Invalid argument.",
	"AuthenticationRequired": "Authentication required.",
	"ObjectUnderActiveHold":  "Object overwrite or deletion is not allowed due to active hold on the object.",
	"RetentionPolicyNotMet":  "Object overwrite or deletion is not allowed due to retention policy.",
}

// mediaReply returns the error as a reply to a request for an object's bytes. For
// such a request, the JSON API sends the bare message,
// https://github.com/googleapis/java-storage/issues/49.
func (e *apiError) mediaReply(asXML bool) *reply {
	if asXML {
		return e.reply(true)
	}
	bare := *e
	bare.text = true
	r := bare.reply(false)
	if len(r.body) > 0 {
		r.set("Content-Type", "text/html; charset=UTF-8")
	}
	return r
}

func domain(reason string) string {
	switch {
	case strings.HasSuffix(reason, "LimitExceeded"):
		return "usageLimits"
	default:
		return "global"
	}
}

// jsonReason returns the reason of the JSON API, which is less precise than the code
// of the XML API.
func jsonReason(reason string) string {
	switch reason {
	case "noBucket", "noUpload":
		return "notFound"
	case "userProjectMissing": // https://github.com/guardian/grid/issues/2588
		return "required"
	case "bucketAlreadyOwnedByYou", "bucketNotEmpty":
		return "conflict"
	case "invalidBucketName", "metadataTooLarge", "badDigest", "crcMismatch":
		return "invalid"
	case "activeHold":
		// objectUnderActiveHold is documented, but the service sends forbidden,
		// https://github.com/kmoneil/zig-gcp/blob/main/src/storage/retention.zig.
		// Only the message distinguishes it from a missing permission.
		return "forbidden"
	case "bucketRateLimitExceeded":
		return "rateLimitExceeded"
	}
	return reason
}

// xmlCode returns the error code of the XML API,
// https://cloud.google.com/storage/docs/xml-api/reference-status.
func xmlCode(reason string) string {
	switch reason {
	case "notFound":
		return "NoSuchKey"
	case "noBucket":
		return "NoSuchBucket"
	case "noUpload":
		return "NoSuchUpload"
	case "invalidPart", "invalidPartOrder", "entityTooSmall", "malformedCompleteMultipartUploadRequest", "badDigest", "crcMismatch",
		"metadataTooLarge", "userProjectMissing", "invalidBucketName", "bucketAlreadyOwnedByYou", "bucketNotEmpty", "objectUnderActiveHold", "retentionPolicyNotMet",
		"customerEncryptionAlgorithmIsInvalid", "customerEncryptionKeyFormatIsInvalid", "customerEncryptionKeyIsIncorrect", "customerEncryptionKeySha256IsInvalid",
		"resourceIsEncryptedWithCustomerEncryptionKey", "resourceNotEncryptedWithCustomerEncryptionKey":
		return strings.ToUpper(reason[:1]) + reason[1:]
	case "activeHold":
		return "ObjectUnderActiveHold"
	case "conditionNotMet":
		return "PreconditionFailed"
	case "conflict":
		return "Conflict"
	case "required", "authError":
		return "AuthenticationRequired"
	case "forbidden", "insufficientPermissions":
		return "AccessDenied"
	case "rateLimitExceeded", "userRateLimitExceeded", "bucketRateLimitExceeded":
		return "SlowDown"
	case "requestedRangeNotSatisfiable":
		return "InvalidRange"
	case "methodNotAllowed":
		return "MethodNotAllowed"
	case "notImplemented":
		return "NotImplemented"
	case "backendError", "internalError":
		return "InternalError"
	}
	return "InvalidArgument"
}

// statusClientClosed is the status of a canceled upload session.
const statusClientClosed = 499

// parseInt parses a request parameter that must be a whole number.
func parseInt(name, value string) (int64, *apiError) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 0, invalid("Invalid value for %s: '%s'. It must be a whole number.", name, value)
	}
	return n, nil
}
