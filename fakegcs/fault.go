package fakegcs

import (
	"io"

	"gcsup/fakegcs/internal/faultplan"
)

// Fault is one entry of a fault plan. Of the requests that Match selects, it lets the
// first Skip pass, and applies Do to the next Times. For each request, the faults of
// the plan are tried in order until one acts on it.
//
//	Match Match  `json:"match"`
//	Skip  int    `json:"skip,omitempty"`  // number of matching requests to let through first
//	Times int    `json:"times,omitempty"` // number of requests to act on; 0 means 1, -1 all
//	Do    Action `json:"do"`
//
// Its method Validate returns an error if the fault is not valid.
type Fault = faultplan.Fault

// Match selects the requests of a fault. The zero value matches all but those on
// fakegcs's own paths.
//
//	Op     Op     `json:"op,omitempty"`
//	Method string `json:"method,omitempty"`
//	Bucket string `json:"bucket,omitempty"`
//	Object string `json:"object,omitempty"` // the exact name
//	Nth    int    `json:"nth,omitempty"`    // only the Nth matching request on each object, from 1
//	From   int64  `json:"from,omitempty"`   // only requests that carry object bytes,
//	To     int64  `json:"to,omitempty"`     // at least one of [From, To); 0 is no end
type Match = faultplan.Match

// Effect names the effect of a fault. On an operation to which it does not apply,
// such as short-commit on a listing, it does nothing, but the request counts.
type Effect = faultplan.Effect

// The effects. The names in brackets are the [Action] fields that each uses;
// all others must be zero.
const (
	// Reply with Status and do nothing else. The request's body is read and
	// discarded, unless Early is set. With Body, ContentType or Location the
	// reply is that of a server in between, without the service's headers.
	// [Status Reason Message Body ContentType Location RetryAfter Early]
	EffectStatus = faultplan.EffectStatus
	// Keep exactly the bytes of the request up to the offset Bytes in the object, then
	// reply with Status. [those of EffectStatus, and Bytes]
	EffectStatusAfter = faultplan.EffectStatusAfter
	// Reply 401 and refuse the request's bearer token from now on. With
	// Options.RequireToken only a new token is then accepted.
	EffectRevoke = faultplan.EffectRevoke

	EffectReset = faultplan.EffectReset // Reset the connection (TCP RST; on HTTP/2 the stream); nothing is read.
	// Read the request, discard it, close the connection in order (FIN; on HTTP/2 as reset).
	EffectClose = faultplan.EffectClose
	// Read Bytes of the request's body, then reset the connection. The upload keeps a
	// multiple of 256 KiB of these bytes. [Bytes]
	EffectCutRequest = faultplan.EffectCutRequest
	// Like cut-request, but for the duration For, queries still report the older offset.
	// [Bytes For]
	EffectLateCommit = faultplan.EffectLateCommit
	// Process the request as usual, send Bytes of the reply's body, then reset the
	// connection. Old HTTP libraries take an orderly close for the end of the body. [Bytes]
	EffectCutReply = faultplan.EffectCutReply
	// Process the request as usual, but end the reply's body after Bytes, so that JSON
	// ends in the middle. [Bytes]
	EffectTruncateReply = faultplan.EffectTruncateReply
	// Process the request as usual, then reset the connection instead of a reply.
	EffectLoseReply = faultplan.EffectLoseReply
	// Reply as usual and end the connection: HTTP/1.1 "Connection: close", HTTP/2 GOAWAY.
	EffectGoAway = faultplan.EffectGoAway
	// Reply as usual, and close the connection after the duration For, without an
	// announcement. A request that the client sends on it meanwhile is not read. On
	// HTTP/2 like goaway. [For]
	EffectCloseAfter = faultplan.EffectCloseAfter

	// Neither read nor reply for the duration For, then continue as usual. Without For,
	// stall until the server is closed, or until the client disconnects if the request
	// has no body. (A server that does not read a body does not see the disconnect.) A
	// stalled request never blocks an upload session. [For]
	EffectStall = faultplan.EffectStall
	// Read Bytes of the request's body, then stall as with stall. [Bytes For]
	EffectStallBody = faultplan.EffectStallBody
	// Process the request as usual, then stall the reply: all of it, or the rest after
	// Bytes of its body. [Bytes For]
	EffectStallReply = faultplan.EffectStallReply
	// Wait when all bytes are committed, before the object is made. [For]
	EffectSlowFinalize = faultplan.EffectSlowFinalize
	// Wait, then continue as usual. [For]
	EffectDelay = faultplan.EffectDelay

	// Keep Bytes fewer bytes than the request carried, and report the offset in a regular
	// 308. Nothing of a body without Content-Length is kept. [Bytes]
	EffectShortCommit = faultplan.EffectShortCommit
	// Leave the Range header out of a 308.
	EffectNoRange = faultplan.EffectNoRange
	// Keep all bytes but don't make the object yet: 308 with the whole range.
	EffectNotFinal = faultplan.EffectNotFinal
	// Report a wrong offset in this reply only: Range has Bytes more than are committed,
	// or fewer if Bytes is negative. [Bytes]
	EffectWrongRange = faultplan.EffectWrongRange
	// Another client with the session URI commits Bytes zeros before the request is
	// processed, but never more than the upload's total. [Bytes]
	EffectForeignWrite = faultplan.EffectForeignWrite
	// The session loses its last Bytes bytes before the request is processed. This is not
	// possible in discard mode. [Bytes]
	EffectRewind = faultplan.EffectRewind
	// Report wrong checksums in this reply: crc32c, md5, the running hash.
	EffectWrongHash = faultplan.EffectWrongHash
	// Leave the size out of the object in this reply.
	EffectOmitSize = faultplan.EffectOmitSize
	// Change one bit of the byte at Bytes of the body as it comes in. [Bytes]
	EffectCorrupt = faultplan.EffectCorrupt
	// The session ends: this and all later requests on it return 410, whose body has the
	// cause. [Status Reason Message: the cause; default 503 backendError]
	EffectGone = faultplan.EffectGone
	// The session is forgotten: 404.
	EffectNotFound = faultplan.EffectNotFound
	// The session was canceled by another client: 499.
	EffectCanceled = faultplan.EffectCanceled
)

// Action is one effect with its parameters. In JSON, the names begin in lower case,
// and For is text such as "1.5s".
//
//	Effect      Effect
//	Status      int
//	Reason      string        // of the JSON error; "" is the usual one of Status
//	Message     string        // of the JSON error
//	Body        string        // replaces the JSON error
//	ContentType string        // of Body, default text/html; without Body the body is empty
//	Location    string        // the header of that name; the body is then Body, even if empty
//	RetryAfter  string        // the header of that name; "+5s" becomes the HTTP date that far ahead
//	Early       bool          // reply before the request's body is read
//	Bytes       int64
//	For         time.Duration
type Action = faultplan.Action

// FaultCount is a fault of the plan with its counts.
//
//	Fault Fault `json:"fault"`
//	Seen  int   `json:"seen"`  // number of requests that it matched, and on which no earlier fault acted
//	Fired int   `json:"fired"` // number of these on which it acted
//	Done  bool  `json:"done"`  // it will not act again
type FaultCount = faultplan.Count

// ParseFaults reads a plan: a JSON array of faults. It refuses unknown fields and
// invalid faults, and its errors name the line.
//
//	[{"match": {"op": "put"}, "skip": 1, "times": 2,
//	  "do": {"effect": "status", "status": 503, "retryAfter": "3"}}]
func ParseFaults(r io.Reader) ([]Fault, error) { return faultplan.Parse(r) }

// RandomFaults returns a plan of n faults for uploads, the same for the same seed.
// They are failures that occur with the service, the network and proxies, at random
// requests and offsets of an upload of size bytes. An uploader that resumes finishes
// with any such plan, because each fault acts at most twice, and none reports a wrong
// offset or ends a session.
func RandomFaults(seed uint64, n int, size int64) []Fault { return faultplan.Random(seed, n, size) }
