package fakegcs

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/faultplan"
	"gcsup/fakegcs/internal/ops"
)

// request is an HTTP request with its parsed URL and headers.
type request struct {
	*http.Request
	op             faults.Op
	xml            bool // a request of the XML API: errors are XML
	bucket, object string
	query          url.Values
	rest           []string // path segments after the object: "rewriteTo", ...
	upload         string   // upload_id
	rangeGiven     bool
	contentRange   contentRange
	rangeErr       error
	in             *body // the request's body; replaces Request.Body
	fault          fault
	replayed       bool // the reply is that to an earlier request with its idempotency token
}

// parse parses r. It never fails; the operation of an unknown request is ops.Unknown.
// It parses the escaped path, because JSON API paths escape "/" in object names. It
// does not clean the path, because "a/../b" and "a//b" are valid object names.
func parse(r *http.Request) *request {
	// Java's HTTP client can't send PATCH,
	// https://gsuite-developers.googleblog.com/2012/03/making-patch-requests-from-app-engine.html.
	if r.Method == http.MethodPost && strings.EqualFold(r.Header.Get("X-Http-Method-Override"), http.MethodPatch) {
		meant := *r
		meant.Method = http.MethodPatch
		r = &meant
	}
	q := &request{Request: r, op: ops.Unknown, query: r.URL.Query()}
	path := r.URL.EscapedPath()
	upload := false
	switch {
	case strings.HasPrefix(path, controlPrefix), path == "/retry_test", path == "/retry_tests", strings.HasPrefix(path, "/retry_test/"):
		q.op = ops.Control
		return q
	case strings.HasPrefix(path, "/upload/storage/v1/"):
		upload, path = true, strings.TrimPrefix(path, "/upload/storage/v1/")
	case strings.HasPrefix(path, "/resumable/upload/storage/v1/"):
		upload, path = true, strings.TrimPrefix(path, "/resumable/upload/storage/v1/")
	case strings.HasPrefix(path, "/download/storage/v1/"):
		path = strings.TrimPrefix(path, "/download/storage/v1/")
		q.query.Set("alt", "media")
	case strings.HasPrefix(path, "/storage/v1/"):
		path = strings.TrimPrefix(path, "/storage/v1/")
	case path == "/b", strings.HasPrefix(path, "/b/"):
		// Node's client adds this to STORAGE_EMULATOR_HOST. No bucket has such a short name.
		path = strings.TrimPrefix(path, "/")
	case projectPath.MatchString(path): // of Node's client, too
		path = strings.TrimPrefix(path, "/")
	case path == "/batch/storage/v1", path == "/batch":
		q.op = byMethod(q.Method, map[string]faults.Op{"POST": ops.Batch})
		return q
	default:
		q.xml = true
		q.parseXML(path)
		return q
	}
	q.parseJSON(path, upload)
	return q
}

func (q *request) parseJSON(path string, upload bool) {
	segs := strings.Split(path, "/")
	for i, s := range segs {
		if u, err := url.PathUnescape(s); err == nil {
			segs[i] = u
		}
	}
	if len(segs) > 1 && segs[len(segs)-1] == "" {
		segs = segs[:len(segs)-1] // a trailing slash
	}
	if segs[0] == "projects" && !upload {
		q.parseProject(segs)
		return
	}
	if segs[0] != "b" {
		return
	}
	if len(segs) > 1 {
		q.bucket = segs[1]
	}
	if len(segs) > 3 {
		q.object = segs[3]
		q.rest = segs[4:]
	}
	switch {
	case len(segs) == 3 && segs[2] == "storageLayout" && !upload:
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": faults.OpBucketLayout})
	case len(segs) == 3 && segs[2] == "iam" && !upload:
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": ops.PolicyGet, "PUT": ops.PolicySet})
	case len(segs) == 3 && segs[2] == "lockRetentionPolicy" && !upload:
		q.op = byMethod(q.Method, map[string]faults.Op{"POST": ops.BucketLock})
	case (len(segs) == 3 || len(segs) == 4) && (segs[2] == bucketACL || segs[2] == defaultACL) && !upload:
		q.object = ""
		q.parseACL(segs[2:])
	case len(segs) == 4 && segs[2] == "iam" && segs[3] == "testPermissions" && !upload:
		q.object, q.op = "", byMethod(q.Method, map[string]faults.Op{"GET": faults.OpBucketPermissions})
	case len(segs) == 3 && segs[2] == "notificationConfigs" && !upload:
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": faults.OpNotificationList, "POST": ops.NotificationInsert})
	case len(segs) == 4 && segs[2] == "notificationConfigs" && !upload:
		q.object, q.rest = "", segs[3:]
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": ops.NotificationGet, "DELETE": ops.NotificationDelete})
	case len(segs) > 2 && (segs[2] == plainFolders || segs[2] == managedFolders) && !upload:
		q.parseFolder(segs[2:])
	case len(segs) > 2 && segs[2] != "o":
		q.rest = segs[2:]
	case len(segs) == 1:
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": ops.BucketList, "POST": ops.BucketInsert})
	case len(segs) == 2:
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": faults.OpBucketGet, "PATCH": ops.BucketPatch, "PUT": ops.BucketPatch, "DELETE": ops.BucketDelete})
	case upload:
		q.object = q.query.Get("name")
		q.parseUpload()
	case len(segs) == 3:
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": faults.OpList})
	case len(q.rest) == 0:
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": faults.OpGet, "PATCH": faults.OpPatch, "PUT": faults.OpPatch, "DELETE": faults.OpDelete})
		if q.op == faults.OpGet && q.query.Get("alt") == "media" {
			q.op = faults.OpRead
		}
	case q.rest[0] == objectACL && len(q.rest) <= 2:
		q.parseACL(q.rest)
	case q.Method != http.MethodPost:
	case q.rest[0] == "moveTo" && len(q.rest) == 3 && q.rest[1] == "o":
		q.op = ops.Move
	case q.rest[0] == "compose":
		q.op = faults.OpCompose
	case q.rest[0] == "restore":
		q.op = ops.Restore
	case (q.rest[0] == "rewriteTo" || q.rest[0] == "copyTo") && len(q.rest) == 5 && q.rest[1] == "b" && q.rest[3] == "o":
		q.op = ops.Rewrite
	}
}

// parseACL distinguishes the requests for an access control list: segs is its name and, for
// one entry, the entity.
func (q *request) parseACL(segs []string) {
	q.rest = segs
	if len(segs) == 1 {
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": ops.ACLList, "POST": ops.ACLInsert})
		return
	}
	q.op = byMethod(q.Method, map[string]faults.Op{"GET": ops.ACLGet, "PATCH": ops.ACLPatch, "PUT": ops.ACLPatch, "DELETE": ops.ACLDelete})
}

// projectPath matches the paths of the HMAC keys and the service account of a project without
// /storage/v1. They hide objects of a bucket "projects" from requests of the XML API.
var projectPath = regexp.MustCompile(`^/projects/[^/]+/(?:serviceAccount|hmacKeys(?:/[^/]+)?)$`)

// parseProject distinguishes the requests for a project: segs is "projects", the project,
// a name and, for one HMAC key, its ID.
func (q *request) parseProject(segs []string) {
	q.rest = segs[1:]
	switch {
	case len(segs) == 3 && segs[2] == "serviceAccount":
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": ops.ServiceAccount})
	case len(segs) == 3 && segs[2] == "hmacKeys":
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": ops.HMACList, "POST": ops.HMACInsert})
	case len(segs) == 4 && segs[2] == "hmacKeys":
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": ops.HMACGet, "PUT": ops.HMACUpdate, "DELETE": ops.HMACDelete})
	}
}

func byMethod(method string, of map[string]faults.Op) faults.Op {
	if op, ok := of[method]; ok {
		return op
	}
	return ops.Unknown
}

// parseUpload distinguishes the requests to an /upload/ path.
func (q *request) parseUpload() {
	if q.query.Has("upload_id") {
		// Without its uploadType, a POST to a session URI is not a request on the session.
		if q.Method != http.MethodPost || q.query.Get("uploadType") == "resumable" {
			q.parseSession()
		}
		return
	}
	switch q.query.Get("uploadType") {
	case "resumable":
		if q.Method == http.MethodPost || q.Method == http.MethodPut {
			q.op = faults.OpStart
		}
	case "media", "multipart":
		if q.Method == http.MethodPost || q.Method == http.MethodPut {
			q.op = faults.OpInsert
		}
	}
}

// parseSession distinguishes the requests on a session URI. PUT and POST are
// equivalent.
func (q *request) parseSession() {
	q.upload = q.query.Get("upload_id")
	switch q.Method {
	case http.MethodDelete:
		q.op = faults.OpCancel
		return
	case http.MethodPut, http.MethodPost:
	default:
		return
	}
	q.op = faults.OpPut
	header := q.Header.Get("Content-Range")
	if header == "" { // the body is the whole object
		q.contentRange = contentRange{first: 0, last: -1, total: q.ContentLength}
		if q.ContentLength > 0 {
			q.contentRange.last = q.ContentLength - 1
		}
		q.op = faults.OpFinalize
		return
	}
	q.rangeGiven = true
	c, err := parseContentRange(header)
	q.contentRange, q.rangeErr = c, err
	switch {
	case err != nil:
	case c.query:
		q.op = faults.OpQuery
	case c.last < 0, c.last+1 == c.total:
		q.op = faults.OpFinalize
	}
}

func (q *request) parseXML(path string) {
	bucket, object, slash := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	var err error
	if q.bucket, err = url.PathUnescape(bucket); err != nil {
		q.bucket = bucket
	}
	if q.object, err = url.PathUnescape(object); err != nil {
		q.object = object
	}
	switch {
	case q.query.Has("upload_id"):
		q.parseSession()
	case q.subresource() != "":
	case q.bucket == "":
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": ops.BucketList})
	case !slash || q.object == "":
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": faults.OpList, "HEAD": faults.OpBucketGet, "PUT": ops.BucketInsert, "DELETE": ops.BucketDelete})
		if q.op == faults.OpList && q.query.Has("uploads") {
			q.op = ops.PartsUploads
		}
	case q.query.Has("uploads"):
		q.op = byMethod(q.Method, map[string]faults.Op{"POST": faults.OpPartsStart})
	case q.query.Has("uploadId"):
		q.op = byMethod(q.Method, map[string]faults.Op{"PUT": faults.OpPartsPut, "POST": faults.OpPartsComplete, "DELETE": faults.OpPartsAbort, "GET": faults.OpPartsList})
	case q.Method == http.MethodPost && strings.EqualFold(q.Header.Get("x-goog-resumable"), "start"),
		q.Method == http.MethodPut && strings.EqualFold(q.Header.Get("x-goog-resumable"), "start"):
		q.op = faults.OpStart
	case q.Method == http.MethodPut && q.Header.Get("x-goog-copy-source") != "":
		q.op = ops.Rewrite
	default:
		q.op = byMethod(q.Method, map[string]faults.Op{"GET": faults.OpRead, "HEAD": faults.OpGet, "PUT": faults.OpInsert, "DELETE": faults.OpDelete})
	}
}

// misdirected reports whether q tries to insert an object at a wrong URL: one without
// uploadType, or one for metadata.
func (q *request) misdirected() bool {
	path := strings.TrimSuffix(q.URL.EscapedPath(), "/")
	if q.op != ops.Unknown || q.xml || q.Method != http.MethodPost || q.query.Has("upload_id") || !strings.HasSuffix(path, "/b/"+url.PathEscape(q.bucket)+"/o") {
		return false
	}
	return q.query.Get("uploadType") == "" || strings.HasPrefix(path, "/storage/") || strings.HasPrefix(path, "/b/")
}

// base returns the server's own URL as the client sees it, for the links in replies:
// the client must be able to reach the session URI in the same way.
func (q *request) base() string {
	scheme := "http"
	if q.TLS != nil {
		scheme = "https"
	}
	if p := q.Header.Get("X-Forwarded-Proto"); p == "http" || p == "https" {
		scheme = p
	}
	return scheme + "://" + q.Host
}

// isSession reports whether the request goes to a session URI.
func (q *request) isSession() bool {
	switch q.op {
	case faults.OpPut, faults.OpFinalize, faults.OpQuery, faults.OpCancel:
		return true
	}
	return false
}

// sessionData reports whether the request brings bytes to a session.
func (q *request) sessionData() bool {
	return q.op == faults.OpPut || q.op == faults.OpFinalize && !q.contentRange.query
}

// dataSpan returns the object bytes [from, to) that the request carries, for faults
// at an offset. to is -1 if it is unknown; ok is false for requests without object
// bytes. In a multipart insert, the bytes of the metadata count too.
func (q *request) dataSpan() (from, to int64, ok bool) {
	switch {
	case q.op == faults.OpInsert, q.op == faults.OpPartsPut:
	case !q.sessionData(), q.rangeErr != nil:
		return 0, 0, false
	case q.contentRange.last >= 0:
		return q.contentRange.first, q.contentRange.last + 1, true
	default:
		from = q.contentRange.first
	}
	if q.ContentLength < 0 {
		return from, -1, true
	}
	return from, from + q.ContentLength, true
}

// planned returns the description of q for the fault plan.
func (q *request) planned() *faultplan.Request {
	r := &faultplan.Request{Op: q.op, Method: q.Method, Bucket: q.bucket, Object: q.object}
	r.From, r.To, r.Data = q.dataSpan()
	return r
}
