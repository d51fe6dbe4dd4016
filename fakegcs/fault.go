package fakegcs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Fault is one line of a fault plan: to the requests that Match is for, let Skip
// of them pass, then do Do to the next Times. A plan is a list: each request
// is offered to them in order until one acts on it. A fault that let a request
// pass, or that has no times left, leaves it to those after it.
type Fault struct {
	Match Match  `json:"match"`
	Skip  int    `json:"skip,omitempty"`  // let so many matching requests pass first
	Times int    `json:"times,omitempty"` // act on so many; 0 means 1, -1 for ever
	Do    Action `json:"do"`
}

// Match says which requests a fault is for. The zero value matches all but
// those on fakegcs's own paths.
type Match struct {
	Op     Op     `json:"op,omitempty"`
	Method string `json:"method,omitempty"`
	Bucket string `json:"bucket,omitempty"`
	Object string `json:"object,omitempty"` // the exact name
	// Nth, when not 0, matches only the Nth of the requests on each object that
	// the rest of Match matches, counted from 1: of many uploads at once, the
	// second chunk of each. All since the fault was added count, also those on
	// which another one acts.
	Nth int `json:"nth,omitempty"`
	// From and To, when not both 0, match only requests that carry object
	// bytes, and at least one of [From, To). To == 0 means no end.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
}

// Effect names what a fault does. One that means nothing for the operation it
// hits, like short-commit for a listing, does nothing there, but counts.
type Effect string

// The effects. The names in brackets are the [Action] fields that each uses;
// all others must be zero.
const (
	// Answer Status and do nothing else; the request's body is read and
	// thrown away, unless Early is set. With Body, ContentType or Location the
	// reply is that of a server in between, and has none of the service's marks.
	// [Status Reason Message Body ContentType Location RetryAfter Early]
	EffectStatus Effect = "status"
	// Answer Status after keeping the bytes of the request up to the offset
	// Bytes in the object, exactly. [as EffectStatus, Bytes]
	EffectStatusAfter Effect = "status-after"
	// Answer 401 and accept the request's bearer token no more. With
	// Options.RequireToken only a new token helps then.
	EffectRevoke Effect = "revoke"

	EffectReset Effect = "reset" // Reset the connection (TCP RST; on HTTP/2 the stream); nothing is read.
	// Read the request, throw it away, close the connection in order (FIN; on HTTP/2 as reset).
	EffectClose Effect = "close"
	// Take Bytes of the request's body, then reset the connection. Of the
	// bytes the upload keeps whole quanta of 256 KiB. [Bytes]
	EffectCutRequest Effect = "cut-request"
	// As cut-request, but what was kept shows only For later: until then
	// queries report the older offset. [Bytes For]
	EffectLateCommit Effect = "late-commit"
	// Do all as usual, send Bytes of the reply's body, then close. [Bytes]
	EffectCutReply Effect = "cut-reply"
	// Do all as usual, send Bytes of the reply's body as if there were no more:
	// JSON that ends in the middle. [Bytes]
	EffectTruncateReply Effect = "truncate-reply"
	// Do all as usual, then reset the connection in place of a reply.
	EffectLoseReply Effect = "lose-reply"
	// Answer as usual and end the connection: HTTP/1.1 "Connection: close", HTTP/2 GOAWAY.
	EffectGoAway Effect = "goaway"
	// Answer as usual and close the connection For later, unannounced. A request
	// that the client sends on it in the meantime is not read. HTTP/2: as goaway. [For]
	EffectCloseAfter Effect = "close-after"

	// Read nothing and answer nothing for For, then go on as usual. Without
	// For: until the server is closed, or the client hangs up and the request
	// has no body. (Who doesn't read a body can't see that the client has gone.)
	// A stalled request never holds an upload session against another. [For]
	EffectStall Effect = "stall"
	// Take Bytes of the request's body, then as stall. [Bytes For]
	EffectStallBody Effect = "stall-body"
	// Do all as usual, then hold the reply back as stall does: all of it, or what
	// comes after Bytes of its body. [Bytes For]
	EffectStallReply Effect = "stall-reply"
	// Wait before the last step: all bytes are there, the object isn't. [For]
	EffectSlowFinalize Effect = "slow-finalize"
	// Wait, then go on as usual. [For]
	EffectDelay Effect = "delay"

	// Keep Bytes fewer than the request carried, and say so in a clean 308.
	// Of a body without Content-Length nothing is kept. [Bytes]
	EffectShortCommit Effect = "short-commit"
	// Leave the Range header out of a 308.
	EffectNoRange Effect = "no-range"
	// Keep all bytes but don't make the object yet: 308 with the whole range.
	EffectNotFinal Effect = "not-final"
	// Lie about the offset: Range names Bytes more than there are (less when
	// negative), in this reply only. [Bytes]
	EffectWrongRange Effect = "wrong-range"
	// Another client that has the session URI commits Bytes zeros of its own,
	// before the request is looked at; never more than the upload's total. [Bytes]
	EffectForeignWrite Effect = "foreign-write"
	// The session loses the last Bytes that it held, before the request is
	// looked at. Not in discard mode. [Bytes]
	EffectRewind Effect = "rewind"
	// Lie about checksums in this reply: crc32c, md5, the running hash.
	EffectWrongHash Effect = "wrong-hash"
	// Leave the size out of the object in this reply.
	EffectOmitSize Effect = "omit-size"
	// Change one bit of the byte at Bytes of the body as it comes in. [Bytes]
	EffectCorrupt Effect = "corrupt"
	// The session dies: this and all later requests on it answer 410, whose
	// body tells the cause. [Status Reason Message: the cause; 503 backendError]
	EffectGone Effect = "gone"
	// The session is forgotten: 404.
	EffectNotFound Effect = "not-found"
	// The session was cancelled by someone: 499.
	EffectCancelled Effect = "cancelled"
)

// Action is exactly one effect with its parameters.
type Action struct {
	Effect Effect
	Status int
	// Reason is the JSON error's; empty takes the usual one of Status.
	Reason  string
	Message string
	// Body, with ContentType (default text/html), replaces the JSON error. A
	// ContentType without a Body makes the body empty.
	Body        string
	ContentType string
	// Location is sent as the header of that name, as it is. The body is then
	// Body, even if that is empty.
	Location string
	// RetryAfter is sent as the header of that name. A duration with a plus
	// sign ("+5s") becomes the HTTP date that far ahead; anything else is sent
	// as it is.
	RetryAfter string
	// Early answers before the body is read.
	Early bool
	Bytes int64
	For   time.Duration
}

// actionJSON is the JSON form of Action: the duration is text, like "1.5s".
type actionJSON struct {
	Effect      Effect `json:"effect"`
	Status      int    `json:"status,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Message     string `json:"message,omitempty"`
	Body        string `json:"body,omitempty"`
	ContentType string `json:"contentType,omitempty"`
	Location    string `json:"location,omitempty"`
	RetryAfter  string `json:"retryAfter,omitempty"`
	Early       bool   `json:"early,omitempty"`
	Bytes       int64  `json:"bytes,omitempty"`
	For         string `json:"for,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (a Action) MarshalJSON() ([]byte, error) {
	j := actionJSON{a.Effect, a.Status, a.Reason, a.Message, a.Body, a.ContentType, a.Location, a.RetryAfter, a.Early, a.Bytes, ""}
	if a.For != 0 {
		j.For = a.For.String()
	}
	return json.Marshal(j)
}

// UnmarshalJSON implements [json.Unmarshaler]. Unknown fields are refused.
func (a *Action) UnmarshalJSON(data []byte) error {
	var j actionJSON
	if err := decodeStrictly(data, &j, "do"); err != nil {
		return err
	}
	*a = Action{j.Effect, j.Status, j.Reason, j.Message, j.Body, j.ContentType, j.Location, j.RetryAfter, j.Early, j.Bytes, 0}
	if j.For != "" {
		d, err := time.ParseDuration(j.For)
		if err != nil {
			return fmt.Errorf("do.for: %q is not a duration such as \"1.5s\"", j.For)
		}
		a.For = d
	}
	return nil
}

// decodeStrictly decodes what stands at path in a fault.
func decodeStrictly(data []byte, v any, path ...string) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its own text names Go types
		want := "an object"
		switch wrong.Type.Kind() {
		case reflect.Int, reflect.Int64:
			want = "a whole number"
		case reflect.String:
			want = "text"
		case reflect.Bool:
			want = "true or false"
		}
		if wrong.Field != "" {
			path = append(path, wrong.Field)
		}
		if len(path) == 0 {
			return fmt.Errorf("want %s, not %s", want, wrong.Value)
		}
		return fmt.Errorf("%s: want %s, not %s", strings.Join(path, "."), want, wrong.Value)
	}
	return err
}

// params are the Action fields that an effect uses.
type params struct{ status, body, bytes, duration, negative, needStatus, needBytes, needFor bool }

var effects = map[Effect]params{
	EffectStatus:        {status: true, body: true, needStatus: true},
	EffectStatusAfter:   {status: true, body: true, needStatus: true, bytes: true},
	EffectRevoke:        {},
	EffectReset:         {},
	EffectClose:         {},
	EffectCutRequest:    {bytes: true},
	EffectLateCommit:    {bytes: true, duration: true, needFor: true},
	EffectCutReply:      {bytes: true},
	EffectTruncateReply: {bytes: true},
	EffectLoseReply:     {},
	EffectGoAway:        {},
	EffectCloseAfter:    {duration: true, needFor: true},
	EffectStall:         {duration: true},
	EffectStallBody:     {bytes: true, duration: true},
	EffectStallReply:    {bytes: true, duration: true},
	EffectSlowFinalize:  {duration: true, needFor: true},
	EffectDelay:         {duration: true, needFor: true},
	EffectShortCommit:   {bytes: true, needBytes: true},
	EffectNoRange:       {},
	EffectNotFinal:      {},
	EffectWrongRange:    {bytes: true, negative: true, needBytes: true},
	EffectForeignWrite:  {bytes: true, needBytes: true},
	EffectRewind:        {bytes: true, needBytes: true},
	EffectWrongHash:     {},
	EffectOmitSize:      {},
	EffectCorrupt:       {bytes: true},
	EffectGone:          {status: true},
	EffectNotFound:      {},
	EffectCancelled:     {},
}

var ops = map[Op]bool{
	"": true, OpStart: true, OpPut: true, OpFinalize: true, OpQuery: true, OpCancel: true, OpInsert: true, OpGet: true, OpRead: true,
	OpList: true, OpDelete: true, OpPatch: true, OpCompose: true, OpRewrite: true, OpRestore: true, OpPartsStart: true, OpPartsPut: true,
	OpPartsComplete: true, OpPartsAbort: true, OpPartsList: true, OpPartsUploads: true, OpBucketInsert: true, OpBucketGet: true,
	OpBucketList: true, OpBucketPatch: true, OpBucketDelete: true, OpBucketLayout: true, OpBatch: true,
}

// Validate tells what is wrong with f, if anything.
func (f Fault) Validate() error {
	d := f.Do
	p, known := effects[d.Effect]
	switch {
	case !ops[f.Match.Op]:
		return fmt.Errorf("match.op: there is no operation %q", f.Match.Op)
	case f.Match.From < 0 || f.Match.To < 0 || f.Match.To > 0 && f.Match.To <= f.Match.From:
		return fmt.Errorf("match: the offsets from %d to %d are no range", f.Match.From, f.Match.To)
	case f.Match.Nth < 0:
		return fmt.Errorf("match.nth: %d is negative; the first request is 1", f.Match.Nth)
	case f.Skip < 0:
		return fmt.Errorf("skip: %d is negative", f.Skip)
	case f.Times < -1:
		return fmt.Errorf("times: %d; give a number of times, or -1 for ever", f.Times)
	case d.Effect == "":
		return errors.New("do.effect: missing")
	case !known:
		return fmt.Errorf("do.effect: there is no effect %q", d.Effect)
	case p.needStatus && d.Status == 0:
		return fmt.Errorf("do.status: missing; effect %q needs it", d.Effect)
	case d.Status != 0 && !p.status:
		return fmt.Errorf("do.status: effect %q does not use it", d.Effect)
	case d.Status != 0 && (d.Status < 200 || d.Status > 599):
		return fmt.Errorf("do.status: %d is not between 200 and 599", d.Status)
	case (d.Reason != "" || d.Message != "") && !p.status:
		return fmt.Errorf("do: effect %q uses no reason and no message", d.Effect)
	case (d.foreign() || d.RetryAfter != "" || d.Early) && !p.body:
		return fmt.Errorf("do: effect %q uses no body, contentType, location, retryAfter or early", d.Effect)
	case d.foreign() && (d.Reason != "" || d.Message != ""):
		return errors.New("do: body, contentType and location replace the JSON error that reason and message are for; give one or the other")
	case d.Bytes != 0 && !p.bytes:
		return fmt.Errorf("do.bytes: effect %q does not use it", d.Effect)
	case d.Bytes < 0 && !p.negative:
		return fmt.Errorf("do.bytes: %d is negative", d.Bytes)
	case p.needBytes && d.Bytes == 0:
		return fmt.Errorf("do.bytes: missing; effect %q needs it", d.Effect)
	case d.For < 0:
		return fmt.Errorf("do.for: %v is negative", d.For)
	case d.For != 0 && !p.duration:
		return fmt.Errorf("do.for: effect %q does not use it", d.Effect)
	case p.needFor && d.For == 0:
		return fmt.Errorf("do.for: missing; effect %q needs it", d.Effect)
	}
	if late, ok := strings.CutPrefix(d.RetryAfter, "+"); ok {
		if _, err := time.ParseDuration(late); err != nil {
			return fmt.Errorf("do.retryAfter: %q is not a duration such as \"+5s\"", d.RetryAfter)
		}
	}
	return nil
}

// ParseFaults reads a plan: a JSON array of faults. What it doesn't
// understand it refuses, with the line.
//
//	[{"match": {"op": "put"}, "skip": 1, "times": 2,
//	  "do": {"effect": "status", "status": 503, "retryAfter": "3"}}]
func ParseFaults(r io.Reader) ([]Fault, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("fakegcs: fault plan: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	fail := func(at int64, what error) ([]Fault, error) {
		line := 1 + bytes.Count(data[:min(at, int64(len(data)))], []byte("\n"))
		return nil, fmt.Errorf("fakegcs: fault plan: line %d: %w", line, what)
	}
	if t, err := dec.Token(); err != nil || t != json.Delim('[') {
		return fail(dec.InputOffset(), errors.New("not a JSON array of faults"))
	}
	var faults []Fault
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return fail(dec.InputOffset(), err)
		}
		start := dec.InputOffset() - int64(len(raw))
		var f Fault
		if err := decodeStrictly(raw, &f); err != nil {
			return fail(start, fmt.Errorf("fault %d: %w", len(faults)+1, err))
		}
		if err := f.Validate(); err != nil {
			return fail(start, fmt.Errorf("fault %d: %w", len(faults)+1, err))
		}
		faults = append(faults, f)
	}
	if _, err := dec.Token(); err != nil {
		return fail(dec.InputOffset(), errors.New("the array has no end"))
	}
	if _, err := dec.Token(); err != io.EOF {
		return fail(dec.InputOffset(), errors.New("more after the end of the array"))
	}
	return faults, nil
}

// matches leaves Nth to the plan, which counts.
func (m Match) matches(q *request) bool {
	if q.op == OpControl ||
		m.Op != "" && m.Op != q.op ||
		m.Method != "" && !strings.EqualFold(m.Method, q.Method) ||
		m.Bucket != "" && m.Bucket != q.bucket ||
		m.Object != "" && m.Object != q.object {
		return false
	}
	if m.From == 0 && m.To == 0 {
		return true
	}
	from, to, ok := q.dataSpan()
	return ok && (m.To == 0 || from < m.To) && (to < 0 || to > m.From)
}

// foreign reports whether the reply of a status fault is that of a server
// between the client and the service.
func (a *Action) foreign() bool { return a.Body != "" || a.ContentType != "" || a.Location != "" }

// statusReply is the answer of a status fault.
func (a *Action) statusReply(asXML bool, now time.Time) *reply {
	var r *reply
	if a.foreign() {
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
		r = a.cause().reply(asXML)
	}
	switch late, ok := strings.CutPrefix(a.RetryAfter, "+"); {
	case ok:
		d, _ := time.ParseDuration(late) // validated
		r.set("Retry-After", now.Add(d).UTC().Format(http.TimeFormat))
	case a.RetryAfter != "":
		r.set("Retry-After", a.RetryAfter)
	}
	return r
}

// onConnection tells whether a is done to the connection that the reply goes
// to, whatever the reply is.
func (a *Action) onConnection() bool {
	if a == nil {
		return false
	}
	switch a.Effect {
	case EffectReset, EffectClose, EffectCutReply, EffectLoseReply, EffectGoAway, EffectCloseAfter, EffectStallReply:
		return true
	}
	return false
}

// shown is o as the reply to q tells of it: with wrong checksums where a fault
// wants that.
func (q *request) shown(o *Object) *Object {
	if !q.fault.is(EffectWrongHash) {
		return o
	}
	o = o.clone()
	o.CRC32C ^= 1
	if o.MD5 != nil {
		o.MD5[0] ^= 1
	}
	return o
}

// resource is o as the reply to q describes it.
func (q *request) resource(o *Object) objectResource {
	r := q.shown(o).resource(q.base())
	if q.fault.is(EffectOmitSize) {
		r.Size = nil
	}
	return r
}

// cause is the error that a status or gone fault stands for.
func (a *Action) cause() *apiError {
	e := &apiError{status: a.Status, reason: a.Reason, message: a.Message}
	if e.status == 0 {
		e.status = http.StatusServiceUnavailable
	}
	if e.reason == "" {
		e.reason = usualReason(e.status)
	}
	if e.message == "" {
		e.message = http.StatusText(e.status)
		if e.message == "" {
			e.message = "Error " + strconv.Itoa(e.status)
		}
	}
	return e
}

// usualReason is the reason that
// https://cloud.google.com/storage/docs/json_api/v1/status-codes lists first
// for a status.
func usualReason(status int) string {
	switch status {
	case 400:
		return "invalid"
	case 401:
		return "authError"
	case 403:
		return "forbidden"
	case 404:
		return "notFound"
	case 405:
		return "methodNotAllowed"
	case 408:
		return "uploadBrokenConnection"
	case 409:
		return "conflict"
	case 411:
		return "lengthRequired"
	case 412:
		return "conditionNotMet"
	case 413:
		return "uploadTooLarge"
	case 416:
		return "requestedRangeNotSatisfiable"
	case 429:
		return "rateLimitExceeded"
	}
	return "backendError"
}
