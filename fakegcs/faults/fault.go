package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"gcsup/fakegcs/internal/ops"
	"gcsup/fakegcs/internal/strictjson"
)

// Fault is one entry of a fault plan. Of the requests that Match selects, it lets the
// first Skip pass, and applies Do to the next Times. For each request, the faults of
// the plan are tried in order until one acts on it.
type Fault struct {
	Match Match  `json:"match"`
	Skip  int    `json:"skip,omitempty"`  // number of matching requests to let through first
	Times int    `json:"times,omitempty"` // number of requests to act on; 0 means 1, -1 all
	Do    Action `json:"do"`
}

// Match selects the requests of a fault. The zero value matches all but those on
// fakegcs's own paths.
type Match struct {
	Op     Op     `json:"op,omitempty"`
	Method string `json:"method,omitempty"`
	Bucket string `json:"bucket,omitempty"`
	Object string `json:"object,omitempty"` // the exact name
	// Nth, if not 0, matches only the Nth request on each object, from 1, among those
	// that the rest of Match matches. For many concurrent uploads, it selects for example
	// the second chunk of each. All requests since the fault was added count, even those
	// on which another fault acts.
	Nth int `json:"nth,omitempty"`
	// From and To, if not both 0, match only requests that carry at least one of the
	// object bytes [From, To). If To is 0, the range has no end.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
}

// Effect names the effect of a fault. On an operation to which it does not apply,
// such as short-commit on a listing, it does nothing, but the request counts.
type Effect string

// The effects. The names in brackets are the [Action] fields that each uses;
// all others must be zero.
const (
	// Reply with Status and do nothing else. The request's body is read and
	// discarded, unless Early is set. With Body, ContentType or Location the
	// reply is that of a server in between, without the service's headers.
	// [Status Reason Message Body ContentType Location RetryAfter Early]
	EffectStatus Effect = "status"
	// Keep exactly the bytes of the request up to the offset Bytes in the object, then
	// reply with Status. [those of EffectStatus, and Bytes]
	EffectStatusAfter Effect = "status-after"
	// Reply 401 and refuse the request's bearer token from now on. With
	// Options.RequireToken only a new token is then accepted.
	EffectRevoke Effect = "revoke"

	EffectReset Effect = "reset" // Reset the connection (TCP RST; on HTTP/2 the stream); nothing is read.
	// Read the request, discard it, close the connection in order (FIN; on HTTP/2 as reset).
	EffectClose Effect = "close"
	// Read Bytes of the request's body, then reset the connection. The upload keeps a
	// multiple of 256 KiB of these bytes. [Bytes]
	EffectCutRequest Effect = "cut-request"
	// Like cut-request, but for the duration For, queries still report the older offset.
	// [Bytes For]
	EffectLateCommit Effect = "late-commit"
	// Process the request as usual, send Bytes of the reply's body, then reset the
	// connection, because old HTTP libraries take an orderly close for the end of the body.
	// [Bytes]
	EffectCutReply Effect = "cut-reply"
	// Process the request as usual, but end the reply's body after Bytes, so that JSON
	// ends in the middle. [Bytes]
	EffectTruncateReply Effect = "truncate-reply"
	// Process the request as usual, then reset the connection instead of a reply.
	EffectLoseReply Effect = "lose-reply"
	// Reply as usual and end the connection: HTTP/1.1 "Connection: close", HTTP/2 GOAWAY.
	EffectGoAway Effect = "goaway"
	// Reply as usual, and close the connection after the duration For, without an
	// announcement. A request that the client sends on it meanwhile is not read. On
	// HTTP/2 like goaway. [For]
	EffectCloseAfter Effect = "close-after"

	// Neither read nor reply for the duration For, then continue as usual. Without For,
	// stall until the server is closed, or until the client disconnects if the request
	// has no body. (A server that does not read a body does not see the disconnect.) A
	// stalled request never blocks an upload session. [For]
	EffectStall Effect = "stall"
	// Read Bytes of the request's body, then stall as with stall. [Bytes For]
	EffectStallBody Effect = "stall-body"
	// Process the request as usual, then stall the reply: all of it, or the rest after
	// Bytes of its body. [Bytes For]
	EffectStallReply Effect = "stall-reply"
	// Wait when all bytes are committed, before the object is made. [For]
	EffectSlowFinalize Effect = "slow-finalize"
	// Wait, then continue as usual. [For]
	EffectDelay Effect = "delay"

	// Do not keep the last Bytes bytes of the request, and report the offset in a regular
	// 308. Nothing of a body without Content-Length is kept. [Bytes]
	EffectShortCommit Effect = "short-commit"
	// Leave the Range header out of a 308.
	EffectNoRange Effect = "no-range"
	// Keep all bytes but don't make the object yet: 308 with the whole range.
	EffectNotFinal Effect = "not-final"
	// Report a wrong offset in this reply only: Range has Bytes more than are committed,
	// or fewer if Bytes is negative. [Bytes]
	EffectWrongRange Effect = "wrong-range"
	// Another client with the session URI commits Bytes zeros before the request is
	// processed, but never more than the upload's total. [Bytes]
	EffectForeignWrite Effect = "foreign-write"
	// The session loses its last Bytes bytes before the request is processed. This is not
	// possible if the server discards the bytes of objects. [Bytes]
	EffectRewind Effect = "rewind"
	// Report wrong checksums in this reply: crc32c, md5, the running hash.
	EffectWrongHash Effect = "wrong-hash"
	// Leave the size out of the object in this reply.
	EffectOmitSize Effect = "omit-size"
	// Leave the checksums out of the object in this reply.
	EffectOmitHash Effect = "omit-hash"
	// Change one bit of the byte at Bytes of the body as it comes in. [Bytes]
	EffectCorrupt Effect = "corrupt"
	// The session ends: this and all later requests on it return 410, whose body has the
	// cause. [Status Reason Message: the cause; default 503 backendError]
	EffectGone Effect = "gone"
	// The session is forgotten: 404.
	EffectNotFound Effect = "not-found"
	// The session was canceled by another client: 499.
	EffectCanceled Effect = "canceled"
)

// Action is one effect with its parameters. In JSON, the names begin in lower case,
// and For is text such as "1.5s".
type Action struct {
	Effect  Effect
	Status  int
	Reason  string // of the JSON error; "" is the usual one of Status
	Message string // of the JSON error
	// Body replaces the JSON error. ContentType is its type; "" means text/html. If
	// ContentType is set, the body is Body, even if empty.
	Body        string
	ContentType string
	Location    string // the header of that name; the body is then Body, even if empty
	RetryAfter  string // the header of that name; "+5s" becomes the HTTP date that far ahead
	Early       bool   // reply before the request's body is read
	Bytes       int64
	For         time.Duration
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
	if err := strictjson.Decode(data, &j, "do"); err != nil {
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
	EffectOmitHash:      {},
	EffectCorrupt:       {bytes: true},
	EffectGone:          {status: true},
	EffectNotFound:      {},
	EffectCanceled:      {},
}

var validOps = map[Op]bool{
	"": true, OpStart: true, OpPut: true, OpFinalize: true, OpQuery: true, OpCancel: true, OpInsert: true, OpGet: true, OpRead: true,
	OpList: true, OpDelete: true, OpPatch: true, OpCompose: true, ops.Rewrite: true, ops.Restore: true, OpPartsStart: true, OpPartsPut: true,
	OpPartsComplete: true, OpPartsAbort: true, OpPartsList: true, ops.PartsUploads: true, ops.BucketInsert: true, OpBucketGet: true,
	ops.BucketList: true, ops.BucketPatch: true, ops.BucketDelete: true, OpBucketLayout: true, OpBucketPermissions: true,
	ops.NotificationInsert: true, ops.NotificationGet: true, OpNotificationList: true, ops.NotificationDelete: true, ops.Batch: true,
	ops.Move: true, ops.BucketLock: true, ops.PolicyGet: true, ops.PolicySet: true, ops.ACLList: true, ops.ACLGet: true, ops.ACLInsert: true, ops.ACLPatch: true,
	ops.ACLDelete: true, ops.HMACInsert: true, ops.HMACGet: true, ops.HMACList: true, ops.HMACUpdate: true, ops.HMACDelete: true, ops.ServiceAccount: true,
	ops.FolderInsert: true, ops.FolderGet: true, ops.FolderList: true, OpFolderDelete: true, ops.ManagedFolderInsert: true, OpManagedFolderGet: true,
	ops.ManagedFolderList: true, ops.ManagedFolderDelete: true, OpManagedFolderPermissions: true,
}

// Validate returns an error if f is not valid.
func (f Fault) Validate() error {
	d := f.Do
	p, known := effects[d.Effect]
	switch {
	case !validOps[f.Match.Op]:
		return fmt.Errorf("match.op: there is no operation %q", f.Match.Op)
	case f.Match.From < 0 || f.Match.To < 0 || f.Match.To > 0 && f.Match.To <= f.Match.From:
		return fmt.Errorf("match: the offsets from %d to %d are not a range", f.Match.From, f.Match.To)
	case f.Match.Nth < 0:
		return fmt.Errorf("match.nth: %d is negative; the first request is 1", f.Match.Nth)
	case f.Skip < 0:
		return fmt.Errorf("skip: %d is negative", f.Skip)
	case f.Times < -1:
		return fmt.Errorf("times: %d; give a number of times, or -1 for always", f.Times)
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

// Count is a fault of the plan with its counts.
type Count struct {
	Fault Fault `json:"fault"`
	Seen  int   `json:"seen"`  // number of requests that it matched, and on which no earlier fault acted
	Fired int   `json:"fired"` // number of these on which it acted
	Done  bool  `json:"done"`  // it will not act again
}

// Parse reads a plan: a JSON array of faults. It refuses unknown fields and invalid
// faults, and its errors name the line.
//
//	[{"match": {"op": "put"}, "skip": 1, "times": 2,
//	  "do": {"effect": "status", "status": 503, "retryAfter": "3"}}]
func Parse(r io.Reader) ([]Fault, error) {
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
		if err := strictjson.Decode(raw, &f); err != nil {
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

// foreign reports whether the reply of a status fault imitates a proxy between the
// client and the service.
func (a *Action) foreign() bool { return a.Body != "" || a.ContentType != "" || a.Location != "" }

// Effects returns all effects, sorted.
func Effects() []Effect { return slices.Sorted(maps.Keys(effects)) }
