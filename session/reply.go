package session

import (
	"crypto/md5"
	"time"
)

// Reply is the result of one exchange.
type Reply struct {
	Op     Op
	Status int   // HTTP status; 308 even if it arrived as 200 with the override header; 0 if no reply arrived
	Err    error // if Status is 0, why no reply arrived; otherwise what is wrong with the reply

	Sent      int64 // put, finalize: offset up to which bytes were passed to the network; other requests: how many bytes
	Committed int64 // 308: the committed offset; -1 without a Range header

	RunningCRC32C *uint32         // 308: CRC32C of the committed bytes; nil if the reply does not have it
	RangeMD5      *[md5.Size]byte // 308: MD5 of the committed bytes; nil if the reply does not have it

	URI    URI     // of the session or multipart upload that the request opened
	Object *Object // 200, 201: the object; nil if the reply does not describe it

	Findings

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

	deletes bool // the request was a DELETE
}

// Findings are what is known of a reply beyond its own exchange: Decide needs them, and only the caller can
// compare the reply with the source and with what came before. The zero value is right if nothing was
// compared.
type Findings struct {
	// Reached reports that the service answered an earlier request, perhaps of another upload. Client sets
	// it for requests to a session.
	Reached bool

	// Differs reports that the checksum in a 308 is not the checksum of the source, or that the
	// object or the reply contradicts what is known, or that the reply to a part does not have the
	// checksum of the part.
	Differs bool

	Ours  bool // stat: Object has the size and CRC32C of the upload; a list of parts: the part has the bytes of the source
	Older bool // stat: Object is older than the first attempt of this upload to write it, or than its session
	Unmet bool // stat: Object, or its absence, does not meet the preconditions of the upload
}

// Open reports whether the reply shows that the session is open. Committed is then its
// committed offset; -1 if the reply has no Range header.
func (r *Reply) Open() bool { return r.Status == 308 && r.Redirect == "" }

// Canceled reports whether the reply to a Cancel means that the session does
// not exist: 499 is success, and a session that was lost need not be canceled.
func (r Reply) Canceled() bool {
	return r.Status == 499 || (r.Status == 404 || r.Status == 410) && r.FromService
}
