package backoff

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Idempotent reports whether making a request twice has the effect of making
// it once, so that it may be retried when it is unknown what became of it.
//
// For Cloud Storage, told by its host or by /storage/v1/ in the path, that is
// what https://cloud.google.com/storage/docs/retry-strategy#idempotency has:
//
//   - always: reading; creating and deleting a bucket; locking a retention
//     policy; deleting an HMAC key or a notification; starting, filling and
//     cancelling a resumable upload;
//   - with ifGenerationMatch: uploading, copying, composing, rewriting or
//     deleting an object (deleting with generation, too); with
//     ifMetagenerationMatch: changing the metadata of an object or bucket. In
//     the XML API the headers x-goog-if-generation-match and
//     x-goog-if-metageneration-match do the same;
//   - never: creating HMAC keys and notifications, and changing ACLs. An etag
//     in the body of a request is not seen.
//
// For other services it goes by the method: GET, HEAD, OPTIONS, PUT and DELETE
// are idempotent (https://www.rfc-editor.org/rfc/rfc9110#name-idempotent-methods),
// and so is what carries an Idempotency-Key.
func Idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	if path, ok := storagePath(req.URL); ok {
		return storageJSON(req.Method, path, req.URL.Query())
	}
	if host := req.URL.Hostname(); host == "storage.googleapis.com" || strings.HasSuffix(host, ".storage.googleapis.com") {
		return storageXML(req)
	}
	switch req.Method {
	case http.MethodPut, http.MethodDelete:
		return true
	}
	return req.Header.Get("Idempotency-Key") != ""
}

// storagePath returns the segments of the path that follow /storage/v1/ in a
// request of Cloud Storage's JSON API. A slash in an object's name is %2F there
// and does not separate.
func storagePath(u *url.URL) ([]string, bool) {
	before, after, ok := strings.Cut(u.EscapedPath(), "/storage/v1/")
	if !ok {
		return nil, false
	}
	switch before {
	case "", "/upload", "/resumable/upload":
		return strings.Split(strings.TrimSuffix(after, "/"), "/"), true
	}
	return nil, false
}

// storageJSON decides for a request that writes, by its path:
//
//	b, b/BUCKET, b/BUCKET/{acl,defaultObjectAcl,iam,lockRetentionPolicy,notificationConfigs}...
//	b/BUCKET/o, b/BUCKET/o/OBJECT, b/BUCKET/o/OBJECT/{acl,compose,copyTo,rewriteTo}...
//	projects/PROJECT/hmacKeys, projects/PROJECT/hmacKeys/KEY
func storageJSON(method string, path []string, query url.Values) bool {
	remove := method == http.MethodDelete
	create := method == http.MethodPost

	// A session of a resumable upload takes each byte once, and one that is
	// started and not used leaves nothing behind.
	if query.Has("upload_id") || create && query.Get("uploadType") == "resumable" {
		return true
	}
	generation := query.Has("ifGenerationMatch")
	metageneration := query.Has("ifMetagenerationMatch")
	switch path[0] {
	case "projects":
		return remove // an HMAC key
	case "b":
	default:
		return false
	}
	switch len(path) {
	case 1: // b
		return create
	case 2: // b/BUCKET
		return remove || metageneration
	}
	switch path[2] {
	case "lockRetentionPolicy":
		return true
	case "notificationConfigs":
		return remove
	case "o":
	default: // acl, defaultObjectAcl, iam, and what is not known
		return false
	}
	switch {
	case len(path) == 3: // b/BUCKET/o
		return generation
	case len(path) == 4 && remove: // b/BUCKET/o/OBJECT
		return generation || query.Has("generation")
	case len(path) == 4:
		return metageneration
	}
	return slices.Contains([]string{"compose", "copyTo", "rewriteTo"}, path[4]) && generation
}

// storageXML decides for a request of the XML API that writes.
func storageXML(req *http.Request) bool {
	query := req.URL.Query()
	return query.Has("upload_id") ||
		req.Header.Get("X-Goog-Resumable") == "start" ||
		req.Header.Get("X-Goog-If-Generation-Match") != "" ||
		req.Header.Get("X-Goog-If-Metageneration-Match") != "" && !query.Has("acl")
}
