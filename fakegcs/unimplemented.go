package fakegcs

import (
	"net/http"
	"slices"
	"strings"
	"sync"
)

// errUnimplemented refuses a feature of Cloud Storage that this server does not
// implement. The status is 400, because Google's clients retry a 501 until their
// context ends. The server logs the feature.
func errUnimplemented(what string) *apiError {
	e := refuse(http.StatusBadRequest, "notImplemented", "This emulator does not implement %s.", what)
	e.missing = what
	return e
}

// grpcUnimplemented refuses a call of gRPC, whose status is in a header. Clients repeat a call that gets an
// HTTP status of 400, but not one with the status UNIMPLEMENTED.
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#responses
func grpcUnimplemented() *reply {
	e := errUnimplemented("gRPC")
	r := newReply(http.StatusOK).set("Content-Type", "application/grpc").set("Grpc-Status", "12").set("Grpc-Message", e.message)
	r.missing = e.missing
	return r
}

// missing records the unimplemented features that clients requested, so that each is
// logged once.
type missing struct {
	mu    sync.Mutex
	named map[string]bool
}

// maxMissing limits the number of names, because clients choose them.
const maxMissing = 1000

// first records the feature what, and reports whether it was not recorded before.
func (m *missing) first(what string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.named[what] || len(m.named) >= maxMissing {
		return false
	}
	if m.named == nil {
		m.named = map[string]bool{}
	}
	m.named[what] = true
	return true
}

// subresources are the parts of a bucket or an object that the XML API names in
// the query, https://cloud.google.com/storage/docs/xml-api/reference-methods,
// without those that this server implements.
var subresources = []string{
	"acl", "billing", "compose", "cors", "defaultObjectAcl", "delete", "encryption", "encryptionConfig", "legal-hold", "lifecycle", "location", "logging",
	"object-lock", "policy", "retention", "storageClass", "tagging", "versioning", "versions", "website",
}

// subresource returns the subresource that an XML API request names, or "".
func (q *request) subresource() string {
	i := slices.IndexFunc(subresources, func(name string) bool { return q.query.Has(name) && q.query.Get(name) == "" })
	if i < 0 {
		return ""
	}
	return subresources[i]
}

// kind describes q without the names of buckets and objects.
func (q *request) kind() string {
	segs := strings.Split(strings.Trim(q.URL.EscapedPath(), "/"), "/")
	if q.xml {
		path := "/*"
		if len(segs) > 1 {
			path = "/*/*"
		}
		if sub := q.subresource(); sub != "" {
			path += "?" + sub
		}
		return q.Method + " " + path
	}
	first := slices.Index(segs, "v1") + 1 // 0 if there is none
	for i := first + 1; i < len(segs); i += 2 {
		if segs[i-1] != "iam" { // the name after it is an operation
			segs[i] = "*"
		}
	}
	return q.Method + " /" + strings.Join(segs, "/")
}

// unknown returns the error for a request that is not an operation of this server.
// The error shows whether the URL or the method is wrong, or the operation is not
// implemented.
func (q *request) unknown() *reply {
	switch {
	case strings.HasPrefix(q.Header.Get("Content-Type"), "application/grpc"):
		return grpcUnimplemented()
	case q.misdirected():
		// https://github.com/google/google-api-javascript-client/issues/200
		return refuse(http.StatusBadRequest, "wrongUrlForUpload", "Upload requests must include an uploadType URL parameter and a URL path beginning with /upload/").reply(false)
	case q.upload != "" || q.query.Has("upload_id"):
		return refuse(http.StatusMethodNotAllowed, "methodNotAllowed", "Method Not Allowed").reply(q.xml)
	case q.Method == http.MethodOptions, q.xml && (q.subresource() != "" || q.Method == http.MethodPost && q.object == ""):
		return errUnimplemented(q.kind()).reply(q.xml)
	case q.bucket != "" && len(q.rest) == 0:
		if slices.Contains([]string{"GET", "PUT", "POST", "DELETE", "PATCH", "HEAD"}, q.Method) && q.query.Get("uploadType") != "" {
			return invalid("Invalid upload type: '%s'.", q.query.Get("uploadType")).reply(q.xml)
		}
		return refuse(http.StatusMethodNotAllowed, "methodNotAllowed", "Method Not Allowed").reply(q.xml)
	case q.bucket != "", strings.HasPrefix(q.URL.Path, "/storage/v1/projects/"), strings.HasPrefix(q.URL.Path, "/storage/v1/channels/"):
		return errUnimplemented(q.kind()).reply(q.xml)
	}
	return refuse(http.StatusNotFound, "notFound", "Not Found").reply(q.xml)
}
