package backoff

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Idempotent reports whether a request that is made twice has the same effect
// as if it is made once. Such a request may be retried even if its outcome is
// unknown.
//
// A request goes to Cloud Storage if its host is that of Cloud Storage or its
// path has /storage/v1/. The rules are those of
// https://cloud.google.com/storage/docs/retry-strategy#idempotency:
//
//   - always: reading; creating and deleting a bucket; locking a retention
//     policy; deleting an HMAC key or a notification; starting, filling and
//     canceling a resumable upload;
//   - with ifGenerationMatch: uploading, copying, composing, rewriting or
//     deleting an object (deleting with generation, too); with
//     ifMetagenerationMatch: changing the metadata of an object or bucket. In
//     the XML API the headers x-goog-if-generation-match and
//     x-goog-if-metageneration-match do the same;
//   - never: creating HMAC keys and notifications, and changing ACLs. An etag
//     in the body of a request is ignored.
//
// For other services, GET, HEAD, OPTIONS, PUT and DELETE are idempotent
// (https://www.rfc-editor.org/rfc/rfc9110#name-idempotent-methods). So is every
// request with an Idempotency-Key header.
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

// storagePath returns the path segments after /storage/v1/ in a request of
// Cloud Storage's JSON API. A slash in an object's name is escaped as %2F and
// separates nothing.
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

// storageJSON implements Idempotent for a writing request of the JSON API.
// These are the paths:
//
//	b, b/BUCKET, b/BUCKET/{acl,defaultObjectAcl,iam,lockRetentionPolicy,notificationConfigs}...
//	b/BUCKET/o, b/BUCKET/o/OBJECT, b/BUCKET/o/OBJECT/{acl,compose,copyTo,rewriteTo}...
//	projects/PROJECT/hmacKeys, projects/PROJECT/hmacKeys/KEY
func storageJSON(method string, path []string, query url.Values) bool {
	remove := method == http.MethodDelete
	create := method == http.MethodPost

	// A resumable upload session stores each byte once. A session that is
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
	default: // acl, defaultObjectAcl, iam, and any other
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

// storageXML implements Idempotent for a writing request of the XML API.
func storageXML(req *http.Request) bool {
	query := req.URL.Query()
	return query.Has("upload_id") ||
		req.Header.Get("X-Goog-Resumable") == "start" ||
		req.Header.Get("X-Goog-If-Generation-Match") != "" ||
		req.Header.Get("X-Goog-If-Metageneration-Match") != "" && !query.Has("acl")
}
