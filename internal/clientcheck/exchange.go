package clientcheck

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gcsup/fakegcs/faults"
)

// Exchange is one request of a client, and its reply.
type Exchange struct {
	Run     int           // 1 or 2
	At      time.Duration // since the first run began
	Elapsed time.Duration
	Until   time.Duration // since the first run began, when the last byte of the request's body was read
	Method  string
	Path    string // with the query, without secrets
	Op      faults.Op
	Bucket  string
	Object  string
	// Session is the number of the upload session, from 1 in the order of their starts. That of a
	// start is the number of the session that it started. 0 means none.
	Session  int
	Header   []string // of the request: "Name: value" of those that matter, without secrets
	Range    Range    // Content-Range of the request
	Length   int64    // Content-Length of the request, or -1
	Received int64    // bytes of the request's body that the server read
	Token    string   // X-Goog-Gcs-Idempotency-Token
	Fault    faults.Effect

	Status  int      // 0: no reply
	Partial bool     // 308, or 200 with X-HTTP-Status-Code-Override: 308
	Reply   []string // headers, like Header
	Text    string   // the beginning of the body
}

// upload are the operations with which clients make objects.
var upload = map[faults.Op]bool{
	faults.OpStart: true, faults.OpPut: true, faults.OpFinalize: true, faults.OpQuery: true, faults.OpInsert: true,
	faults.OpCompose: true, faults.OpPartsStart: true, faults.OpPartsPut: true, faults.OpPartsComplete: true,
}

// data reports whether the request brings bytes of the object.
func (x *Exchange) data() bool {
	switch x.Op {
	case faults.OpPut, faults.OpInsert, faults.OpPartsPut:
		return true
	case faults.OpFinalize:
		return !x.Range.Query
	}
	return false
}

// ended reports whether the reply says that the session does not exist any more.
func (x *Exchange) ended() bool {
	if x.Session == 0 || x.Fault == faults.EffectStatus {
		return false
	}
	return x.Status == 404 || x.Status == 410 || x.Status == 499
}

// Range is a Content-Range header of a request.
type Range struct {
	Given bool
	Valid bool
	Query bool  // "bytes */T" or "bytes */*"
	First int64 // of the first byte
	Last  int64 // of the last byte, or -1
	Total int64 // or -1
}

var contentRange = regexp.MustCompile(`^bytes (?:\*|(\d+)-(\d+|\*))/(\d+|\*)$`)

// parseRange parses the value of a Content-Range header. "" is none.
func parseRange(s string) Range {
	r := Range{Given: s != "", Last: -1, Total: -1}
	m := contentRange.FindStringSubmatch(s)
	if m == nil {
		return r
	}
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return -1
		}
		return n
	}
	r.Valid, r.Query, r.Total = true, m[1] == "", number(m[3])
	if !r.Query {
		r.First, r.Last = number(m[1]), number(m[2])
		r.Valid = r.Last < 0 || r.Last >= r.First
	}
	return r
}

// String returns the exchange in one line.
func (x Exchange) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %s %s", x.At.Round(time.Millisecond), x.Method, x.Op)
	if x.Session != 0 {
		fmt.Fprintf(&b, " (session %d)", x.Session)
	}
	for _, h := range x.Header {
		if strings.HasPrefix(h, "Content-Range: ") {
			b.WriteString(" " + h)
		}
	}
	fmt.Fprintf(&b, ", %d bytes", x.Received)
	if x.Fault != "" {
		fmt.Fprintf(&b, ", fault %s", x.Fault)
	}
	if x.Status == 0 {
		b.WriteString(": no reply")
		return b.String()
	}
	fmt.Fprintf(&b, ": %d", x.Status)
	for _, h := range x.Reply {
		if strings.HasPrefix(h, "Range: ") {
			b.WriteString(" " + h)
		}
	}
	return b.String()
}
