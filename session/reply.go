package session

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"gcsup/backoff"
	"gcsup/session/internal/oneline"
)

const (
	bodyLimit   = 64 << 10 // of an error's body
	objectLimit = 1 << 20  // of an Object resource; its metadata is limited to 8 KiB, its ACL is not
)

// Reply is the result of one exchange.
type Reply struct {
	Op     Op
	Status int   // HTTP status; 308 even if it arrived as 200 with the override header; 0 if no reply arrived
	Err    error // if Status is 0, why no reply arrived; otherwise what is wrong with the reply

	Sent      int64 // put, finalize: end of the object bytes passed to the network; insert, part: their number
	Committed int64 // 308: the committed offset; -1 without a Range header

	RunningCRC32C *uint32         // 308: CRC32C of the committed bytes; nil if the reply does not have it
	RangeMD5      *[md5.Size]byte // 308: MD5 of the committed bytes; nil if the reply does not have it

	URI    URI     // start, multipart-start: the session URI, or the multipart upload
	Object *Object // 200, 201: the object; nil if the reply does not describe it

	// Set by the driver.
	Ours    bool // stat: Object has the size and CRC32C of the upload; parts: the part has its bytes
	Older   bool // stat: Object was created before the driver's first attempt, or its session
	Unmet   bool // stat: Object, or its absence, does not meet the preconditions of the caller
	Reached bool // the service answered an earlier request, perhaps of another upload

	// Differs reports that the checksum of a 308 is not that of the source, or that the object or the
	// answer is not what is known. Client sets it for a part whose reply has another checksum, or none.
	Differs bool

	FromService bool // the error is from Cloud Storage and not from a proxy
	Unsent      bool // put, finalize, insert: no byte of the body was passed to the network, so that the request had no effect
	Reused      bool // the request used a connection that was used before

	Date time.Time // the server's clock; zero if the reply has none

	Reason     string        // error reason of the JSON API, such as rateLimitExceeded
	Message    string        // error message, on one line
	Inner      int           // 410: the status in its body, which is the cause; 0 if there is none
	RetryAfter time.Duration // from the Retry-After header; 0 if there is none

	// Redirect is the scheme and host of the target of a 3xx reply; "" if there
	// is none. The service never redirects, so that the redirect is from a
	// proxy.
	Redirect string
}

// Lost reports that no reply arrived.
func (r *Reply) Lost() bool { return r.Status == 0 }

// Held returns the committed offset that the reply reports for an open session; -1 if the
// reply has no Range header. ok is false for any other reply.
func (r *Reply) Held() (committed int64, ok bool) {
	return r.Committed, r.Status == 308 && r.Redirect == ""
}

// Answers reports whether the reply is an answer to the question of the request: success, or
// the absence of what it is about.
func (r *Reply) Answers() bool {
	_, open := r.Held()
	return open || r.success() || r.absent()
}

// Answered reports whether the reply comes from the service. It is false for some
// replies of the service that a proxy may send, too.
func (r *Reply) Answered() bool {
	_, open := r.Held()
	return open || r.FromService || r.Object != nil || !r.URI.IsZero() || r.Op == OpList && r.success()
}

// Canceled reports whether the reply to a Cancel means that the session does
// not exist: 499 is success, and a session that was lost need not be canceled.
func (r Reply) Canceled() bool {
	return r.Status == 499 || (r.Status == 404 || r.Status == 410) && r.FromService
}

// parseReply parses the reply to x. It accepts an incomplete body, because a query can ask for
// the missing data. It requires no particular error body, because the upload server also sends
// text and HTML. scrub removes the secrets of the request from a text.
func (x *call) parseReply(scrub func(string) string, resp *http.Response) Reply {
	r := Reply{Op: x.op, Status: resp.StatusCode, Err: marked(resp), Committed: -1}
	r.Date, _ = http.ParseTime(resp.Header.Get("Date"))
	r.RetryAfter, _ = backoff.RetryAfter(resp.Header.Get("Retry-After"), time.Now())
	if r.Status >= 300 && r.Status < 400 {
		r.Redirect = target(resp)
	}
	if r.Status == 200 && resp.Header.Get("X-Http-Status-Code-Override") == "308" {
		r.Status = 308
	}
	switch success := r.Status == 200 || r.Status == 201 && x.readError == nil; {
	case success && x.read != nil:
		if err := x.read(&r, resp); err != nil {
			r.Status, r.Err = 0, err
		}
	case x.readError != nil:
		x.readError(&r, scrub, resp)
	case r.Status == 308:
		r.Committed = parseRange(resp.Header.Get("Range"))
		if crc, ok := hashHeader(resp.Header, "X-Goog-Running-Hash"); ok {
			r.RunningCRC32C = &crc
		}
		if sum, err := hex.DecodeString(resp.Header.Get("X-Range-Md5")); err == nil && len(sum) == md5.Size {
			r.RangeMD5 = (*[md5.Size]byte)(sum)
		}
	case success:
		r.Object = readReplyObject(resp)
	default:
		body, _ := io.ReadAll(io.LimitReader(resp.Body, bodyLimit))
		var reason, message string
		reason, message, r.Inner = parseError(resp.Header.Get("Content-Type"), body)
		r.setError(scrub, resp, r.Inner != 0, reason, message)
		if r.Status != 410 {
			r.Inner = 0
		}
	}
	return r
}

// setError sets r from an error of the service, or of another server.
func (r *Reply) setError(scrub func(string) string, resp *http.Response, fromService bool, reason, message string) {
	r.FromService = fromService || resp.Header.Get("X-Guploader-Uploadid") != ""
	// Remove the secrets before oneline.Text shortens the text, which could leave a part of one.
	r.Reason, r.Message = oneline.Text(scrub(reason)), oneline.Text(scrub(message))
}

// replyBodies are buffers for the bodies of replies that describe an object. They
// have at most bodyLimit.
var replyBodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// readReplyObject returns the object that a successful reply describes, or nil.
func readReplyObject(resp *http.Response) *Object {
	b := replyBodies.Get().(*bytes.Buffer)
	defer func() {
		if b.Cap() <= bodyLimit {
			b.Reset()
			replyBodies.Put(b)
		}
	}()
	var o *Object
	if _, err := b.ReadFrom(io.LimitReader(resp.Body, objectLimit)); err == nil {
		o = parseObject(b.Bytes())
	}
	if o == nil && b.Len() == 0 {
		o = objectFromHeaders(resp.Header)
	}
	return o
}

// target returns the scheme and host of a redirect's target. The rest of the
// URL may be a secret.
func target(resp *http.Response) string {
	location := resp.Header.Get(redirectHeader)
	if location == "" {
		return ""
	}
	u, err := url.Parse(location)
	if err != nil {
		return "a malformed URL"
	}
	if resp.Request != nil && resp.Request.URL != nil {
		u = resp.Request.URL.ResolveReference(u)
	}
	return oneline.Text(u.Scheme + "://" + u.Host)
}

// parseRange returns N+1 for "bytes=0-N", and -1 for anything else.
// https://cloud.google.com/storage/docs/performing-resumable-uploads#status-check
func parseRange(header string) int64 {
	last, ok := strings.CutPrefix(strings.TrimSpace(header), "bytes=0-")
	if !ok {
		return -1
	}
	n, err := strconv.ParseUint(last, 10, 62)
	if err != nil {
		return -1
	}
	return int64(n) + 1
}

// parseError parses the body of an error: the JSON of the API
// (https://cloud.google.com/storage/docs/json_api/v1/status-codes) or plain
// text. It ignores HTML.
func parseError(contentType string, body []byte) (reason, message string, code int) {
	var e struct {
		Error struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors"`
		} `json:"error"`
		Code    int    `json:"code"` // Google's test bench has no "error" around them
		Message string `json:"message"`
	}
	text := string(body)
	if json.Unmarshal(body, &e) == nil && (e.Error.Code != 0 || e.Error.Message != "") {
		if len(e.Error.Errors) > 0 {
			reason = e.Error.Errors[0].Reason
		}
		return reason, e.Error.Message, e.Error.Code
	}
	if e.Code >= 400 {
		return "", e.Message, e.Code
	}
	if strings.Contains(contentType, "html") || strings.HasPrefix(strings.TrimSpace(text), "<") {
		return "", "", 0
	}
	return "", text, 0
}

// staleConnection reports whether object data was sent over a connection that was
// probably closed while it was idle, which is no failure of the service. The next
// request need not wait, but should use a new connection, see
// [Client.WithoutKeepAlive].
func (r *Reply) staleConnection() bool {
	return r.Reused && r.Status == 0 && r.Op.carriesData() && verdict(r, true) == backoff.Transient && !errors.Is(r.Err, ErrStalled)
}

// Refusal returns the error of a permanent failure. It wraps one of the
// sentinel errors.
func (r Reply) Refusal() *Error { return r.fail(permanent(&r, r.Status)) }

// Damaged reports whether the service refused the object because its bytes do not
// have a checksum that was sent for them.
func (r Reply) Damaged() bool { return r.damaged(r.Status) }

// Retryable reports whether the same request may succeed after a wait.
func (r Reply) Retryable() bool { return verdict(&r, r.Reached || !r.Op.begins()) == backoff.Transient }
