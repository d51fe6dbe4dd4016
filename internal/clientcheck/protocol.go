package clientcheck

import (
	"cmp"
	"fmt"
	"slices"

	"gcsup/fakegcs/faults"
)

// patience is how many requests may still bring data to a session that is gone: some clients ask
// twice, because a front end can be wrong.
const patience = 2

// protocolFailures returns the first request that breaks each rule of the protocol.
func protocolFailures(s Script, list []Exchange) []Failure {
	var found []Failure
	seen := map[string]bool{}
	fail := func(i int, rule, format string, args ...any) {
		if !seen[rule] {
			seen[rule] = true
			found = append(found, Failure{PartProtocol, rule, fmt.Sprintf(format, args...), i + 1})
		}
	}
	gone := map[int]int{} // data requests by session since it is gone
	tokens := map[string]string{}
	for i := range list {
		e := &list[i]
		if e.Session != 0 && e.data() && gone[e.Session] > 0 {
			if gone[e.Session]++; gone[e.Session] > 1+patience {
				fail(i, "dead-session", "%d data requests on a session that the service reported as gone", gone[e.Session]-1)
			}
		}
		if e.ended() && gone[e.Session] == 0 {
			gone[e.Session] = 1
		}
		if what := e.onObject(); e.Token != "" && what != "" {
			if earlier := tokens[e.Token]; earlier != "" && earlier != what {
				fail(i, "token", "the idempotency token of %s is used again for %s", earlier, what)
			}
			tokens[e.Token] = what
		}
		if k := overlapped(list[:i], e); k >= 0 {
			fail(i, "overlap", "the client sends data while it sends that of request %d on the same session", k+1)
		}
		rule, text := e.mistake(s.Damages)
		if rule != "" {
			fail(i, rule, "%s", text)
		}
	}
	return found
}

// overlapped returns the index of a request whose data was still arriving on the session of x when x came, or -1.
// Only a request counts that the service then accepted: what a client has broken off may arrive late.
func overlapped(earlier []Exchange, x *Exchange) int {
	return slices.IndexFunc(earlier, func(e Exchange) bool {
		return x.Session != 0 && x.Session == e.Session && x.data() && e.data() && e.Run == x.Run && x.At < e.Until &&
			e.Fault == "" && (e.Partial || e.Status/100 == 2)
	})
}

// onObject describes a request whose token the service remembers. It is empty for other requests.
func (x *Exchange) onObject() string {
	switch x.Op {
	case faults.OpInsert, faults.OpDelete, faults.OpPatch:
		return fmt.Sprintf("%s %s/%s", x.Op, x.Bucket, x.Object)
	}
	return ""
}

// mistake returns the rule that one request breaks by itself, or "". damages is Script.Damages.
func (x *Exchange) mistake(damages bool) (rule, text string) {
	r := x.Range
	span := r.Last + 1 - r.First
	switch {
	case x.Session == 0 || x.Op == faults.OpStart || x.Op == faults.OpCancel:
	case r.Given && !r.Valid:
		return "content-range", "the Content-Range header is malformed: " + x.said()
	case r.Last >= 0 && x.Length >= 0 && span != x.Length:
		return "length", fmt.Sprintf("Content-Range spans %d bytes, and Content-Length is %d", span, x.Length)
	case x.Op == faults.OpPut && r.Last >= 0 && span%Granularity != 0:
		return "granularity", fmt.Sprintf("a chunk of %d bytes is not the last, and no multiple of 256 KiB", span)
	case x.Fault == "" && x.Status == 503 && r.First > 0:
		return "offset", fmt.Sprintf("the chunk at %d begins after the committed bytes: %s", r.First, x.said())
	}
	if !upload[x.Op] || x.Fault != "" {
		return "", ""
	}
	switch x.Status {
	case 400:
		if damages && (x.Op == faults.OpFinalize || x.Op == faults.OpInsert) {
			return "", ""
		}
		fallthrough
	case 411, 413, 416:
		return "refused", fmt.Sprintf("the service refuses a request (%s) with %d: %s", x.Op, x.Status, x.said())
	}
	return "", ""
}

// said returns what the service replied.
func (x *Exchange) said() string { return cmp.Or(x.Text, fmt.Sprintf("status %d", x.Status)) }
