package fakegcs

import (
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/ops"
)

// Request is the record of one finished HTTP request.
type Request struct {
	Time         time.Time     `json:"time"` // when it arrived
	Elapsed      time.Duration `json:"elapsed_ns"`
	Method       string        `json:"method"`
	Path         string        `json:"path"` // with the query; secrets such as an upload_id are shown as REDACTED
	Op           faults.Op     `json:"op"`
	Bucket       string        `json:"bucket,omitempty"`
	Object       string        `json:"object,omitempty"`
	ContentRange string        `json:"content_range,omitempty"`
	Received     int64         `json:"received"` // body bytes that the server read
	Status       int           `json:"status"`   // 0: no reply was sent
	Sent         int64         `json:"sent"`     // body bytes of the reply
	Range        string        `json:"range,omitempty"`
	Fault        faults.Effect `json:"fault,omitempty"` // the effect that acted on it
	UserAgent    string        `json:"user_agent,omitempty"`

	// IdempotencyToken is the header X-Goog-Gcs-Idempotency-Token. Replayed reports that the
	// reply is that to an earlier request with this token, and that this one had no effect.
	IdempotencyToken string `json:"idempotency_token,omitempty"`
	Replayed         bool   `json:"replayed,omitempty"`
}

// LogValue implements [slog.LogValuer].
func (r Request) LogValue() slog.Value {
	return slog.GroupValue(slog.String("method", r.Method), slog.String("op", string(r.Op)), slog.String("path", r.Path),
		slog.String("contentRange", r.ContentRange), slog.Int64("received", r.Received), slog.Int("status", r.Status),
		slog.String("range", r.Range), slog.String("fault", string(r.Fault)), slog.Duration("elapsed", r.Elapsed))
}

// Stats are totals since the server was made, without requests on fakegcs's own
// paths.
type Stats struct {
	Requests int64               `json:"requests"`
	Received int64               `json:"received"` // bytes of request bodies
	Sent     int64               `json:"sent"`     // bytes of reply bodies
	Ops      map[faults.Op]int64 `json:"ops"`      // requests by operation
	Faults   int64               `json:"faults"`   // requests that a fault acted on
}

// requestLog keeps the latest requests and the totals.
type requestLog struct {
	keep      int // -1: none
	onRequest func(Request)
	mu        sync.Mutex // guards the fields below
	list      []Request
	stats     Stats
}

// note records a finished request.
func (l *requestLog) note(q *request, out *sent, start time.Time) {
	if q.op == ops.Control {
		return
	}
	if l.keep < 0 && l.onRequest == nil {
		l.add(Request{Op: q.op, Received: q.in.received.Load(), Sent: out.bytes, Fault: q.fault.effect}) // the totals only
		return
	}
	r := Request{
		Time: start, Elapsed: time.Since(start), Method: q.Method, Path: redact(q.URL), Op: q.op, Bucket: q.bucket, Object: q.object,
		ContentRange: q.Header.Get("Content-Range"), Received: q.in.received.Load(), Status: out.status, Sent: out.bytes,
		Range: out.reported, Fault: q.fault.effect, UserAgent: q.UserAgent(),
		IdempotencyToken: q.Header.Get(idempotencyHeader), Replayed: q.replayed,
	}
	l.add(r)
	if l.onRequest != nil {
		l.onRequest(r)
	}
}

// redact returns the URL without its secrets: session IDs, tokens and signatures. It
// edits the raw query, because a secret must not show even if its parameter cannot
// be parsed.
func redact(u *url.URL) string {
	if u.RawQuery == "" {
		return u.RequestURI()
	}
	separator := func(c rune) bool { return c == '&' || c == ';' }
	var changed []string // the parameters, if one has a secret
	i := 0
	for param := range strings.FieldsFuncSeq(u.RawQuery, separator) {
		if name, secret := secretParam(param); secret {
			if changed == nil {
				changed = strings.FieldsFunc(u.RawQuery, separator)
			}
			changed[i] = name + "=REDACTED"
		}
		i++
	}
	query := u.RawQuery
	if changed != nil {
		query = strings.Join(changed, "&")
	}
	return u.EscapedPath() + "?" + query
}

// secretParam returns the name of a parameter of a raw query, and whether it has a secret.
func secretParam(param string) (name string, secret bool) {
	name, _, given := strings.Cut(param, "=")
	if !given {
		return name, false
	}
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	switch strings.ToLower(name) { // which allocates nothing for a name in lower case
	case "upload_id", "uploadid", "access_token", "key", "signature", "x-goog-signature", "x-amz-signature":
		return name, true
	}
	return name, false
}

func (l *requestLog) add(r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Requests++
	l.stats.Received += r.Received
	l.stats.Sent += r.Sent
	if l.stats.Ops == nil {
		l.stats.Ops = map[faults.Op]int64{}
	}
	l.stats.Ops[r.Op]++
	if r.Fault != "" {
		l.stats.Faults++
	}
	if l.keep < 0 {
		return
	}
	if len(l.list) >= 2*l.keep { // drop the older half at once, which is cheaper than single entries
		l.list = slices.Clone(l.list[len(l.list)-l.keep:])
	}
	l.list = append(l.list, r)
}

// Requests returns the latest requests in the order in which they ended, at least as many
// as [Options.KeepRequests]. Those on fakegcs's own paths are left out. A request that
// gets no reply because of a fault is added before its connection ends.
func (s *Server) Requests() []Request {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	return slices.Clone(s.requests.list)
}

// Stats returns the totals so far.
func (s *Server) Stats() Stats {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	st := s.requests.stats
	st.Ops = map[faults.Op]int64{}
	for op, n := range s.requests.stats.Ops {
		st.Ops[op] = n
	}
	return st
}
