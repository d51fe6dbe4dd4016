package fakegcs

import (
	"net/http"
	"time"

	"gcsup/fakegcs/faults"
)

// The values of headers that replies share.
var (
	jsonType      = []string{"application/json; charset=UTF-8"}
	uploadServer  = []string{"UploadServer"}
	noCache       = []string{"no-cache, no-store, max-age=0, must-revalidate"}
	noCachePragma = []string{"no-cache"}
	longAgo       = []string{"Mon, 01 Jan 1990 00:00:00 GMT"}
	revalidate    = []string{"private, max-age=0, must-revalidate, no-transform"}
	private       = []string{"private, max-age=0"}
	varyJSON      = []string{"Origin", "X-Origin"}
	varyXML       = []string{"Origin"}
)

// complete adds the headers that the service sends with every reply to a request of the
// kind of q. All 899 recorded replies of the service have the first two;
// internal/compat/recorded compares the others.
func (r *reply) complete(q *request, now time.Time) {
	if r.header.Get("X-Guploader-Uploadid") == "" {
		id := q.query.Get("upload_id")
		if id == "" { // each request has an ID
			id = newUploadID()
		}
		r.mark(id)
	}
	if !q.xml && (r.status == http.StatusNoContent || r.status == http.StatusNotModified) { // net/http removes it from a 304
		r.set("Content-Type", "application/json")
	}
	read := q.Method == http.MethodGet || q.Method == http.MethodHead
	switch {
	case r.incomplete():
	case q.xml && (read || q.Method == http.MethodDelete):
		r.cache(private, now)
		if !read {
			r.header["Vary"] = varyXML
		}
	case q.xml:
		r.header["Vary"] = varyXML
	case read && q.op != faults.OpRead && r.status == http.StatusOK:
		r.cache(revalidate, now)
		r.header["Vary"] = varyJSON
	default:
		r.header["Cache-Control"], r.header["Pragma"], r.header["Expires"] = noCache, noCachePragma, longAgo
		r.header["Vary"] = varyJSON
	}
}

// cache sets headers for a cache, unless the object has a Cache-Control of its own.
func (r *reply) cache(control []string, now time.Time) {
	if r.header.Get("Cache-Control") == "" {
		r.header["Cache-Control"] = control
	}
	r.set("Expires", now.UTC().Format(http.TimeFormat))
}

// incomplete reports whether r says that an upload is not complete.
func (r *reply) incomplete() bool {
	return r.status == http.StatusPermanentRedirect || r.header.Get("X-Http-Status-Code-Override") != ""
}
