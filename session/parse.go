package session

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gcsup/backoff"
	"gcsup/internal/objectmeta"
	"gcsup/session/internal/oneline"
)

const (
	bodyLimit   = 64 << 10 // of an error's body
	objectLimit = 1 << 20  // of an Object resource; its metadata is limited to 8 KiB, its ACL is not
)

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
		reason, message := x.readError(resp.Body)
		r.setError(scrub, resp, reason != "", reason, message)
	case r.Status == 308:
		r.Committed = parseRange(resp.Header.Get("Range"))
		if crc, ok := objectmeta.CRC32C(resp.Header, "X-Goog-Running-Hash"); ok {
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

// readReplyObject returns the object that a successful reply describes, or nil.
func readReplyObject(resp *http.Response) *Object {
	var o *Object
	body, err := io.ReadAll(io.LimitReader(resp.Body, objectLimit))
	if err == nil {
		o = parseObject(body)
	}
	if o == nil && len(body) == 0 {
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
