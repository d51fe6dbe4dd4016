package fakegcs

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"gcsup/fakegcs/faults"
)

// The limits of the index page.
const (
	indexObjects  = 100 // of each bucket
	indexRequests = 50  // the latest
)

// index returns the page that shows the state of the server to people. It has no secrets: the
// IDs of sessions are not in it.
func (s *Server) index() *reply {
	var p indexPage
	p.markup(`<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>fakegcs</title><style>
:root { color-scheme: light dark; font-family: system-ui, sans-serif; } body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .15rem 1rem .15rem 0; vertical-align: top; } td { font-family: ui-monospace, monospace; }
</style><h1>fakegcs</h1><p>An emulator of Cloud Storage.</p>`)
	contents := s.store.contents(indexObjects)
	for _, b := range contents {
		p.bucket(b)
	}
	if len(contents) == 0 {
		p.markup("<p>There are no buckets.</p>")
	}
	p.sessions(s.sessions.open(s.now()))
	p.faults(s.FaultReport())
	p.requests(s.Requests())
	r := newReply(http.StatusOK).set("Content-Type", "text/html; charset=UTF-8").set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'").set("Cache-Control", "no-store")
	r.body = []byte(p.b.String())
	return r
}

// indexPage writes the index page. It escapes everything but markup.
type indexPage struct{ b strings.Builder }

func (p *indexPage) markup(text string) { p.b.WriteString(text) }

func (p *indexPage) text(format string, args ...any) {
	p.b.WriteString(html.EscapeString(fmt.Sprintf(format, args...)))
}

// table begins a table, and row adds a line to it.
func (p *indexPage) table(columns ...string) {
	p.markup("<table><tr>")
	for _, c := range columns {
		p.markup("<th>")
		p.text("%s", c)
	}
	p.markup("\n")
}

func (p *indexPage) row(values ...any) {
	p.markup("<tr>")
	for _, v := range values {
		p.markup("<td>")
		p.text("%v", v)
	}
	p.markup("\n")
}

// bucketContents is an overview of a bucket.
type bucketContents struct {
	name           string
	objects, bytes int64     // of all live objects
	first          []*Object // of those
}

// contents returns an overview of each bucket, with the first n objects.
func (s *store) contents(n int) []bucketContents {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []bucketContents
	for _, name := range slices.Sorted(maps.Keys(s.buckets)) {
		c, b := bucketContents{name: name}, s.buckets[name]
		for _, object := range b.sortedNames() {
			v := b.live(object)
			if v == nil {
				continue
			}
			c.objects++
			c.bytes += v.Size
			if len(c.first) < n {
				c.first = append(c.first, v.Object)
			}
		}
		list = append(list, c)
	}
	return list
}

// bucket lists the first objects of a bucket.
func (p *indexPage) bucket(b bucketContents) {
	p.markup("<h2>")
	p.text("gs://%s", b.name)
	p.markup("</h2><p>")
	p.text("%d objects, %d bytes", b.objects, b.bytes)
	p.markup("</p>")
	if len(b.first) == 0 {
		return
	}
	p.table("object", "bytes", "type", "generation", "updated")
	for _, o := range b.first {
		p.row(o.Name, o.Size, o.ContentType, o.Generation, o.Updated.Format(time.RFC3339))
	}
	p.markup("</table>")
	if more := b.objects - int64(len(b.first)); more > 0 {
		p.markup("<p>")
		p.text("and %d more", more)
		p.markup("</p>")
	}
}

// openSession is an upload session that is not finished.
type openSession struct {
	bucket, object   string
	committed, total int64
	created          time.Time
}

// open returns the sessions that are not finished, the oldest first.
func (s *sessions) open(now time.Time) []openSession {
	s.mu.Lock()
	list := slices.Collect(maps.Values(s.byID))
	s.mu.Unlock()
	var open []openSession
	for _, u := range list {
		u.mu.Lock()
		if u.State == active && !u.expired(now) {
			open = append(open, openSession{u.Meta.Bucket, u.Meta.Name, u.committedLocked(now), u.Total, u.Created})
		}
		u.mu.Unlock()
	}
	slices.SortFunc(open, func(a, b openSession) int { return a.created.Compare(b.created) })
	return open
}

func (p *indexPage) sessions(open []openSession) {
	p.markup("<h2>Open upload sessions</h2>")
	if len(open) == 0 {
		p.markup("<p>None.</p>")
		return
	}
	p.table("object", "committed bytes", "of", "since")
	for _, u := range open {
		total := "unknown"
		if u.total >= 0 {
			total = fmt.Sprint(u.total)
		}
		p.row("gs://"+u.bucket+"/"+u.object, u.committed, total, u.created.Format(time.RFC3339))
	}
	p.markup("</table>")
}

func (p *indexPage) faults(report []faults.Count) {
	p.markup("<h2>Fault plan</h2>")
	if len(report) == 0 {
		p.markup("<p>None.</p>")
		return
	}
	p.table("match", "effect", "seen", "fired", "done")
	for _, f := range report {
		match, _ := json.Marshal(f.Fault.Match) // text and numbers, which can always be marshaled
		p.row(string(match), f.Fault.Do.Effect, f.Seen, f.Fired, f.Done)
	}
	p.markup("</table>")
}

func (p *indexPage) requests(list []Request) {
	p.markup("<h2>Latest requests</h2>")
	if len(list) == 0 {
		p.markup("<p>None.</p>")
		return
	}
	p.table("time", "request", "operation", "status", "fault", "bytes in", "bytes out", "took")
	for _, r := range slices.Backward(list[max(0, len(list)-indexRequests):]) {
		p.row(r.Time.Format("15:04:05.000"), r.Method+" "+r.Path, r.Op, r.Status, r.Fault, r.Received, r.Sent, r.Elapsed.Round(time.Microsecond))
	}
	p.markup("</table>")
}
