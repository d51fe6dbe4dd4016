package session

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gcsup/backoff"
)

const (
	bodyLimit    = 64 << 10 // of an error's body
	objectLimit  = 1 << 20  // of an Object resource; its metadata is limited to 8 KiB, its ACL is not
	messageLimit = 300
)

// Reply is the outcome of one exchange. It never needs a particular body:
// errors of the upload server are text or HTML as often as JSON.
type Reply struct {
	Op     Op
	Status int   // HTTP status; 308 also when it came as 200 with the override header; 0: no reply arrived
	Err    error // why no reply arrived, when Status is 0; else what is wrong with the reply

	Sent      int64 // put, finalize: the offset up to which object bytes were handed to the network; insert: how many
	Committed int64 // 308: how many bytes the server holds; -1 without a Range header

	RunningCRC32C *uint32  // 308: CRC32C of the bytes the server holds, when it says
	RangeMD5      [16]byte // 308: MD5 of the same, when HasRangeMD5
	HasRangeMD5   bool

	URI    URI     // start: the session
	Object *Object // 200, 201: the object, when the reply described one

	// Set by the driver.
	Ours    bool // stat: Object has the size and CRC32C of what it uploads
	Older   bool // stat: Object was made before the driver's first attempt, or its session
	Differs bool // 308: the checksum is not that of the source

	FromService bool // an error that is Cloud Storage's own, and not that of something on the way
	Unsent      bool // put, finalize, insert: no byte of the body was handed over, so the server did nothing
	Reused      bool // the request went out on a connection that was used before

	Date time.Time // the server's clock; zero if the reply has none

	Reason     string        // error reason of the JSON API, such as rateLimitExceeded
	Message    string        // for people, on one line
	Inner      int           // 410: the status inside its body, which is the cause; 0 if there is none
	RetryAfter time.Duration // from the header; 0 if there is none

	// Redirect is the scheme and host that a 3xx reply points to, "" if it
	// points nowhere. The service never redirects: something on the way does.
	Redirect string

	location URI // start: as the service gave it
}

// Cancelled reports whether the reply to a Cancel means that the session no longer
// exists. 499 is success, and a session that the service does not know needs no
// cancelling.
func (r Reply) Cancelled() bool {
	return r.Status == 499 || (r.Status == 404 || r.Status == 410) && r.FromService
}

// parseReply reads an HTTP response. A body that breaks off is treated as the
// part that arrived: what it lacks is asked for by a query.
func parseReply(op Op, uri URI, resp *http.Response) Reply {
	r := Reply{Op: op, Status: resp.StatusCode, Committed: -1}
	if resp.StatusCode == 200 && resp.Header.Get("X-Http-Status-Code-Override") == "308" {
		r.Status = 308
	}
	r.Date, _ = http.ParseTime(resp.Header.Get("Date"))
	r.RetryAfter, _ = backoff.RetryAfter(resp.Header.Get("Retry-After"), time.Now())
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		r.Redirect = target(resp)
	}
	switch {
	case r.Status == 308:
		r.Committed = parseRange(resp.Header.Get("Range"))
		if crc, ok := hashHeader(resp.Header, "X-Goog-Running-Hash"); ok {
			r.RunningCRC32C = &crc
		}
		if sum, err := hex.DecodeString(resp.Header.Get("X-Range-Md5")); err == nil && len(sum) == len(r.RangeMD5) {
			copy(r.RangeMD5[:], sum)
			r.HasRangeMD5 = true
		}
	case r.Status == 200 || r.Status == 201:
		if op == OpStart {
			r.location = newURI(resp.Header.Get("Location"))
			break
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, objectLimit))
		if err == nil {
			r.Object = parseObject(body)
		}
		if r.Object == nil && len(body) == 0 {
			r.Object = objectFromHeaders(resp.Header)
		}
	default:
		body, _ := io.ReadAll(io.LimitReader(resp.Body, bodyLimit))
		var reason, message string
		reason, message, r.Inner = parseError(resp.Header.Get("Content-Type"), body)
		r.FromService = r.Inner != 0 || resp.Header.Get("X-Guploader-Uploadid") != ""
		// The secret goes first, so that no piece of it is left at a cut.
		r.Reason, r.Message = oneLine(uri.scrub(reason)), oneLine(uri.scrub(message))
		if r.Status != 410 {
			r.Inner = 0
		}
	}
	return r
}

// target is the scheme and host that a redirect points to. The rest of the URL
// may be a secret.
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
	return oneLine(u.Scheme + "://" + u.Host)
}

// parseRange reads "bytes=0-N" as N+1. Anything else is -1: unknown.
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

// parseError reads an error's body: the JSON of the API when it is that
// (https://cloud.google.com/storage/docs/json_api/v1/status-codes), plain text
// otherwise. HTML says nothing that helps.
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

// oneLine makes a server's text fit to be shown in a message of ours.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > messageLimit {
		text = strings.ToValidUTF8(text[:messageLimit], "") + "…"
	}
	return text
}

// Refusal is what a reply means that neither waiting nor a query can cure, as
// an error that wraps one of the sentinels.
func (r Reply) Refusal() *Error { return r.fail(permanent(r, r.Status), 0) }

// Retryable reports whether the same request, made again after a wait, may
// fare better.
func (r Reply) Retryable() bool { return verdict(r, !r.Op.begins()) == backoff.Transient }
