package fakegcs

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gcsup/fakegcs/faults"
)

// statusReply returns the reply of a status fault.
func statusReply(a *faults.Action, asXML bool, now time.Time) *reply {
	var r *reply
	if imitatesProxy(a) {
		r = newReply(a.Status).set("Content-Type", "text/html; charset=UTF-8")
		r.foreign = true
		if a.ContentType != "" {
			r.set("Content-Type", a.ContentType)
		}
		if a.Location != "" {
			r.set("Location", a.Location)
		}
		r.body = []byte(a.Body)
	} else {
		r = faultCause(a).reply(asXML)
	}
	if v := retryAfter(a, now); v != "" {
		r.set("Retry-After", v)
	}
	return r
}

// shown returns o for the reply to q: with wrong checksums if a fault asks for
// them.
func (q *request) shown(o *Object) *Object {
	if !q.fault.object.wrongHash {
		return o
	}
	o = o.clone()
	o.CRC32C ^= 1
	if o.MD5 != nil {
		o.MD5[0] ^= 1
	}
	return o
}

// resource returns o as the reply to q describes it.
func (q *request) resource(o *Object) objectResource {
	o = q.shown(o)
	r := q.projected(o.resource(q.base()), o)
	if q.fault.object.omitSize {
		r.Size = nil
	}
	if q.fault.object.omitHash {
		r.CRC32C, r.MD5 = nil, nil
	}
	return r
}

// faultCause returns the error of a status or gone fault.
func faultCause(a *faults.Action) *apiError {
	e := &apiError{status: a.Status, reason: a.Reason, message: a.Message}
	if e.status == 0 {
		e.status = http.StatusServiceUnavailable
	}
	if e.reason == "" {
		e.reason = cmp.Or(usualReasons[e.status], "backendError")
	}
	if e.message == "" {
		e.message = http.StatusText(e.status)
		if e.message == "" {
			e.message = "Error " + strconv.Itoa(e.status)
		}
	}
	return e
}

// usualReasons are the reasons that https://cloud.google.com/storage/docs/json_api/v1/status-codes
// lists first for a status. All others are backendError.
var usualReasons = map[int]string{
	400: "invalid",
	401: "authError",
	403: "forbidden",
	404: "notFound",
	405: "methodNotAllowed",
	408: "uploadBrokenConnection",
	409: "conflict",
	411: "lengthRequired",
	412: "conditionNotMet",
	413: "uploadTooLarge",
	416: "requestedRangeNotSatisfiable",
	429: "rateLimitExceeded",
}

// imitatesProxy reports whether the reply of a status fault imitates a proxy between the
// client and the service.
func imitatesProxy(a *faults.Action) bool {
	return a.Body != "" || a.ContentType != "" || a.Location != ""
}

// retryAfter returns the value of the Retry-After header in a reply at time
// now, or "" for none.
func retryAfter(a *faults.Action, now time.Time) string {
	late, relative := strings.CutPrefix(a.RetryAfter, "+")
	if !relative {
		return a.RetryAfter
	}
	d, _ := time.ParseDuration(late) // validated
	return now.Add(d).UTC().Format(http.TimeFormat)
}
