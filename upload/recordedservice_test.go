package upload_test

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs/memnet"
)

// recordedService is a small service that answers as the real one was recorded to answer. It shares no
// code with package fakegcs. Replies of which no recording exists are those of the documentation;
// their texts are marked "documented". Sources:
//
//	FE  https://github.com/t-k/fireemu, conformance/fixtures, 2026
//	FL  https://github.com/floci-io/floci-gcp, issues 34, 126 and 132, 2026
//	PS  https://github.com/googleapis/python-storage/issues/1541, 2025
//	SR  https://github.com/googleapis/google-cloud-go/blob/main/storage/storage.replay, 2019
//	GC  https://github.com/google/go-cloud/tree/master/blob/gcsblob/testdata, 2026
//	NC  https://github.com/nextcloud/server/issues/12537, 2018
//	LE  https://github.com/learningequality/studio/issues/964, 2018
//	GR  https://github.com/cloudyr/googleCloudStorageR/issues/122, 2020
//	ZG  https://github.com/kmoneil/zig-gcp, docs/storage/transfers.md, 2026
//	GS  https://github.com/getsentry/objectstore/pull/575, 2026
type recordedService struct {
	// fault, if it is set, may answer in place of the service. It is called for each request with the number of
	// earlier requests of the same kind.
	fault func(kind string, n int, r *http.Request) *canned
	// namespace is that of multipart uploads: recordings have two.
	namespace string
	// checksAtStart makes the start of a session check preconditions: statements contradict each other.
	checksAtStart bool

	mu         sync.Mutex
	objects    map[string]*recordedObject
	sessions   map[string]*recordedSession
	uploads    map[string]*recordedUpload
	kinds      map[string]int
	generation int64
}

type recordedObject struct {
	name, contentType string
	content           []byte
	generation        int64
	components        int // of a composed object
}

type recordedSession struct {
	name, contentType string
	ifGeneration      string // ifGenerationMatch, "" for none
	content           []byte
	made              *recordedObject
	state             int // the status of a dead session, 0 if it is alive
}

type recordedUpload struct {
	name      string
	parts     map[int][]byte
	made      *recordedObject
	completed bool
	aborted   bool
}

// canned is a reply that replaces that of the service.
type canned struct {
	after  bool // the request takes effect first
	read   int  // bytes of the body that are read before a cut; all of them if it is 0
	cut    bool // the connection ends without a reply
	status int
	header map[string]string
	body   string
	front  bool // not of the service, so that it has no X-GUploader-UploadID
}

func newRecordedService(t *testing.T) (*recordedService, *http.Client) {
	t.Helper()
	s := &recordedService{
		namespace: "http://s3.amazonaws.com/doc/2006-03-01/", objects: map[string]*recordedObject{}, sessions: map[string]*recordedSession{},
		uploads: map[string]*recordedUpload{}, kinds: map[string]int{}, generation: 1773932904741118,
	}
	ln, dial := memnet.Listen()
	server := &http.Server{Handler: s}
	go server.Serve(ln)
	tr := &http.Transport{DialContext: dial}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		_ = server.Close()
		time.Sleep(time.Second) // virtual: net/http waits before it closes a connection that it cuts
	})
	return s, &http.Client{Transport: tr}
}

var noCacheSet = map[string]string{"Cache-Control": "no-cache, no-store, max-age=0, must-revalidate", "Pragma": "no-cache", "Expires": "Mon, 01 Jan 1990 00:00:00 GMT"}

// jsonError is an error of the JSON API as in 2026 (FE, GC). extra are further fields of the item.
func jsonError(status int, reason, message, extra string) *canned {
	body := fmt.Sprintf(`{"error":{"code":%d,"message":%q,"errors":[{"message":%q,"domain":"global","reason":%q%s}]}}`, status, message, message, reason, extra)
	header := maps.Clone(noCacheSet)
	header["Content-Type"] = "application/json; charset=UTF-8"
	return &canned{status: status, header: header, body: body}
}

// xmlError is an error of the XML API (GC, SR): a generic message, and the specific text in the details.
func xmlError(status int, code, message, details string) *canned {
	if details != "" {
		details = "<Details>" + details + "</Details>"
	}
	return &canned{
		status: status, header: map[string]string{"Content-Type": "application/xml; charset=UTF-8", "Vary": "Origin"},
		body: "<?xml version='1.0' encoding='UTF-8'?><Error><Code>" + code + "</Code><Message>" + message + "</Message>" + details + "</Error>",
	}
}

func preconditionFailed() *canned { // GC:TestIfNotExist
	return jsonError(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.", `,"locationType":"header","location":"If-Match"`)
}

func notFoundObject(name string) *canned { // FE:errors--missing
	return jsonError(404, "notFound", "No such object: bkt/"+name, "")
}

// kind returns the kind of a request: start, put, query, final, cancel, insert, stat, delete, compose, or of
// the XML API initiate, part, list, complete, abort.
func kind(r *http.Request) string {
	q := r.URL.Query()
	contentRange := r.Header.Get("Content-Range")
	switch {
	case q.Has("upload_id") && r.Method == "DELETE":
		return "cancel"
	case q.Has("upload_id") && strings.HasPrefix(contentRange, "bytes */"):
		return "query"
	case q.Has("upload_id") && !strings.HasSuffix(contentRange, "/*") && isLast(contentRange):
		return "final"
	case q.Has("upload_id"):
		return "put"
	case q.Get("uploadType") == "resumable":
		return "start"
	case q.Get("uploadType") == "multipart":
		return "insert"
	case strings.HasSuffix(r.URL.Path, "/compose"):
		return "compose"
	case strings.HasPrefix(r.URL.Path, "/storage/v1/b/bkt/o/") && r.Method == "DELETE":
		return "delete"
	case strings.HasPrefix(r.URL.Path, "/storage/v1/b/bkt/o/"):
		return "stat"
	case strings.HasPrefix(r.URL.Path, "/storage/v1/"):
		return "bucket"
	case q.Has("uploads"):
		return "initiate"
	case q.Has("partNumber"):
		return "part"
	case r.Method == "POST":
		return "complete"
	case r.Method == "DELETE":
		return "abort"
	}
	return "list"
}

// span parses a Content-Range: the offsets [from, to) and the total, -1 if it is not known.
func span(header string) (from, to, total int64) {
	header = strings.TrimPrefix(header, "bytes ")
	bounds, size, _ := strings.Cut(header, "/")
	if total = -1; size != "*" {
		total, _ = strconv.ParseInt(size, 10, 64)
	}
	if first, last, ok := strings.Cut(bounds, "-"); ok {
		from, _ = strconv.ParseInt(first, 10, 64)
		to, _ = strconv.ParseInt(last, 10, 64)
		to++
	}
	return from, to, total
}

func isLast(header string) bool {
	_, to, total := span(header)
	return to == total
}

func (s *recordedService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k := kind(r)
	s.mu.Lock()
	n := s.kinds[k]
	s.kinds[k]++
	var c *canned
	if s.fault != nil {
		c = s.fault(k, n, r)
	}
	s.mu.Unlock()
	limit := int64(1) << 40
	if c != nil && c.read > 0 {
		limit = int64(c.read)
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, limit))
	if c != nil && c.read > 0 { // what arrives before the connection is cut is kept in steps of 256 KiB (ZG)
		s.mu.Lock()
		s.commit(r, body[:int64(len(body))/q*q])
		s.mu.Unlock()
	}
	reply := c
	if c == nil || c.after {
		s.mu.Lock()
		reply = s.answer(k, r, body)
		s.mu.Unlock()
		if c != nil {
			reply = c
		}
	}
	if reply.cut {
		panic(http.ErrAbortHandler)
	}
	for name, value := range reply.header {
		w.Header().Set(name, value)
	}
	if !reply.front {
		w.Header().Set("X-Guploader-Uploadid", "AGQBYWx97k6LHbzg")
		w.Header().Set("Server", "UploadServer")
	}
	w.WriteHeader(reply.status)
	_, _ = io.WriteString(w, reply.body)
}

// commit adds the bytes to the session of the request.
func (s *recordedService) commit(r *http.Request, body []byte) {
	u := s.sessions[r.URL.Query().Get("upload_id")]
	if u == nil || u.made != nil {
		return
	}
	from, _, _ := span(r.Header.Get("Content-Range"))
	if skip := int64(len(u.content)) - from; skip >= 0 && skip <= int64(len(body)) {
		u.content = append(u.content, body[skip:]...)
	}
}

// answer performs a request. The caller holds s.mu.
func (s *recordedService) answer(k string, r *http.Request, body []byte) *canned {
	query := r.URL.Query()
	name := strings.TrimPrefix(r.URL.Path, "/storage/v1/b/bkt/o/")
	switch k {
	case "start":
		return s.start(r, body)
	case "put", "query", "final", "cancel":
		return s.session(k, r, body)
	case "insert":
		return s.insert(r, body)
	case "stat":
		o := s.objects[name]
		if o == nil {
			return notFoundObject(name)
		}
		return object(o)
	case "delete":
		if s.objects[name] == nil {
			return notFoundObject(name)
		}
		delete(s.objects, name)
		return &canned{status: 204, header: map[string]string{"Content-Type": "application/json"}} // GC:TestDelete
	case "compose":
		return s.compose(strings.TrimSuffix(name, "/compose"), query.Get("ifGenerationMatch"), body)
	case "bucket": // documented
		return &canned{status: 200, header: map[string]string{"Content-Type": "application/json; charset=UTF-8"}, body: `{"kind":"storage#testIamPermissionsResponse","permissions":["storage.objects.create","storage.objects.delete","storage.multipartUploads.create"],"name":"bkt","locationType":"region"}`}
	}
	return s.multipart(k, strings.TrimPrefix(r.URL.Path, "/bkt/"), query, body)
}

// publish makes an object, or returns nil if the precondition does not hold.
func (s *recordedService) publish(o *recordedObject, ifGeneration string) *recordedObject {
	current := int64(0)
	if old := s.objects[o.name]; old != nil {
		current = old.generation
	}
	if ifGeneration != "" && ifGeneration != strconv.FormatInt(current, 10) {
		return nil
	}
	s.generation++
	o.generation = s.generation
	s.objects[o.name] = o
	return o
}

func crcOf(p []byte) string {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli)))
	return base64.StdEncoding.EncodeToString(b[:])
}

// object is the metadata of an object as FE:gcs--resumable-upload#7, GC and, for a composed one, SR#74 have it.
func object(o *recordedObject) *canned {
	sum := md5.Sum(o.content)
	hash := fmt.Sprintf(`"md5Hash":%q,`, base64.StdEncoding.EncodeToString(sum[:]))
	if o.components > 0 {
		hash = fmt.Sprintf(`"componentCount":%d,`, o.components)
	}
	header := maps.Clone(noCacheSet)
	header["Content-Type"], header["Etag"], header["Vary"] = "application/json; charset=UTF-8", "CP7xkYWfrJMDEAE=", "Origin, X-Origin"
	at := "2026-03-19T15:08:24.743Z"
	return &canned{status: 200, header: header, body: fmt.Sprintf(`{"kind":"storage#object","id":"bkt/%s/%d","selfLink":"https://www.googleapis.com/storage/v1/b/bkt/o/%[1]s",
		"mediaLink":"https://storage.googleapis.com/download/storage/v1/b/bkt/o/%[1]s?generation=%[2]d&alt=media","name":%[1]q,"bucket":"bkt","generation":"%[2]d","metageneration":"1",
		"contentType":%q,"storageClass":"STANDARD","size":"%d",%s"crc32c":%q,"etag":"CP7xkYWfrJMDEAE=","timeCreated":%[7]q,"updated":%[7]q,"timeStorageClassUpdated":%[7]q,"timeFinalized":%[7]q}`,
		o.name, o.generation, o.contentType, len(o.content), hash, crcOf(o.content), at)}
}

func (s *recordedService) start(r *http.Request, body []byte) *canned { // FE:gcs--resumable-upload#4
	var meta struct{ Name, ContentType string }
	_ = json.Unmarshal(body, &meta)
	u := &recordedSession{name: meta.Name, contentType: meta.ContentType, ifGeneration: r.URL.Query().Get("ifGenerationMatch")}
	if name := r.URL.Query().Get("name"); name != "" {
		u.name = name
	}
	if s.checksAtStart && u.ifGeneration == "0" && s.objects[u.name] != nil {
		return preconditionFailed()
	}
	id := fmt.Sprintf("ABPnzm%d", len(s.sessions))
	s.sessions[id] = u
	header := maps.Clone(noCacheSet)
	header["Content-Type"] = "text/plain; charset=utf-8"
	header["Location"] = "http://gcs.test/upload/storage/v1/b/bkt/o?uploadType=resumable&name=" + u.name + "&upload_id=" + id
	return &canned{status: 200, header: header}
}

func clientClosed() *canned { return jsonError(499, "clientClosedRequest", "clientClosedRequest", "") } // FE probe, 2026-09-30

func (s *recordedService) session(k string, r *http.Request, body []byte) *canned {
	u := s.sessions[r.URL.Query().Get("upload_id")]
	switch {
	case u == nil:
		return &canned{status: 404, header: map[string]string{"Content-Type": "text/plain; charset=utf-8"}, body: "Not Found"} // documented
	case u.state == 499:
		return clientClosed()
	case u.made != nil: // FL#132: also if the object was deleted since
		return object(u.made)
	case k == "cancel":
		u.state = 499
		return clientClosed()
	}
	from, _, total := span(r.Header.Get("Content-Range"))
	if k != "query" && from > int64(len(u.content)) { // FL, 2026-08-27
		return &canned{status: 503, header: map[string]string{"Content-Type": "text/plain; charset=utf-8"}, body: fmt.Sprintf(
			"Invalid request.  According to the Content-Range header, the upload offset is %d byte(s), which exceeds already uploaded size of %d byte(s).", from, len(u.content))}
	}
	s.commit(r, body)
	if total < 0 || total != int64(len(u.content)) || k == "put" {
		return incomplete(u.content, r)
	}
	for _, sum := range strings.Split(r.Header.Get("X-Goog-Hash"), ",") { // PS
		if crc, ok := strings.CutPrefix(strings.TrimSpace(sum), "crc32c="); ok && crc != crcOf(u.content) {
			return jsonError(400, "invalid", fmt.Sprintf("Provided CRC32C \"%s\" doesn't match calculated CRC32C \"%s\".", crc, crcOf(u.content)), "")
		}
	}
	if u.made = s.publish(&recordedObject{name: u.name, contentType: u.contentType, content: u.content}, u.ifGeneration); u.made == nil {
		return preconditionFailed() // ZG: to the last chunk
	}
	return object(u.made)
}

// incomplete is a 308 (FE:gcs--resumable-upload#5 and #6), or with X-GUploader-No-308 what FL#132 recorded.
func incomplete(content []byte, r *http.Request) *canned {
	c := &canned{status: 308, header: map[string]string{"Content-Type": "text/plain; charset=utf-8"}}
	if n := len(content); n > 0 {
		sum := md5.Sum(content)
		c.header["Range"] = fmt.Sprintf("bytes=0-%d", n-1)
		c.header["X-Goog-Running-Hash"], c.header["X-Range-Md5"] = "crc32c="+crcOf(content), hex.EncodeToString(sum[:])
	}
	if r.Header.Get("X-Guploader-No-308") == "yes" {
		c.status, c.header["X-Http-Status-Code-Override"] = 200, "308"
	}
	return c
}

func (s *recordedService) insert(r *http.Request, body []byte) *canned {
	_, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	parts := multipart.NewReader(strings.NewReader(string(body)), params["boundary"])
	var meta struct{ Name, ContentType, Crc32c string }
	first, err := parts.NextPart()
	if err == nil {
		err = json.NewDecoder(first).Decode(&meta)
	}
	if err != nil || meta.Name == "" { // GC:write_to_empty_key_fails, under the type of HTML
		c := jsonError(400, "required", "No object name", "")
		c.header["Content-Type"] = "text/html; charset=UTF-8"
		return c
	}
	second, err := parts.NextPart()
	if err != nil { // FE:gcs--simple-multipart-upload#26
		return jsonError(400, "invalidPayloadSize", "Payload size invalid. Expected 2-3 payloads. Actual size: 1", "")
	}
	content, _ := io.ReadAll(second)
	if meta.Crc32c != "" && meta.Crc32c != crcOf(content) { // FE:gcs--checksums#37
		return jsonError(400, "invalid", fmt.Sprintf("Provided CRC32C \"%s\" doesn't match calculated CRC32C \"%s\".", meta.Crc32c, crcOf(content)), "")
	}
	o := s.publish(&recordedObject{name: meta.Name, contentType: meta.ContentType, content: content}, r.URL.Query().Get("ifGenerationMatch"))
	if o == nil {
		return preconditionFailed()
	}
	return object(o)
}

func (s *recordedService) compose(name, ifGeneration string, body []byte) *canned { // SR#74
	var ask struct {
		SourceObjects []struct{ Name string }
		Destination   struct{ ContentType string }
	}
	_ = json.Unmarshal(body, &ask)
	o := &recordedObject{name: name, contentType: ask.Destination.ContentType}
	for _, source := range ask.SourceObjects {
		from := s.objects[source.Name]
		if from == nil {
			return notFoundObject(source.Name)
		}
		o.content = append(o.content, from.content...)
		o.components += max(from.components, 1)
	}
	if s.publish(o, ifGeneration) == nil {
		return preconditionFailed()
	}
	return object(o)
}

func (s *recordedService) multipart(k, name string, query map[string][]string, body []byte) *canned {
	xmlReply := func(body string) *canned {
		return &canned{status: 200, header: map[string]string{"Content-Type": "application/xml; charset=UTF-8"}, body: "<?xml version='1.0' encoding='UTF-8'?>" + body}
	}
	if k == "initiate" { // MG and PC: two namespaces
		id := fmt.Sprintf("ABPnzm%065d", len(s.uploads))
		s.uploads[id] = &recordedUpload{name: name, parts: map[int][]byte{}}
		return xmlReply("<InitiateMultipartUploadResult xmlns='" + s.namespace + "'><Bucket>bkt</Bucket><Key>" + name + "</Key><UploadId>" + id + "</UploadId></InitiateMultipartUploadResult>")
	}
	id := ""
	if v := query["uploadId"]; len(v) > 0 {
		id = v[0]
	}
	u := s.uploads[id]
	gone := xmlError(404, "NoSuchUpload", "The requested upload was not found.", "") // documented
	switch {
	case u == nil, u.completed && k != "complete", u.aborted && k != "abort":
		return gone
	case k == "part":
		n, _ := strconv.Atoi(query["partNumber"][0])
		u.parts[n] = body
		sum := md5.Sum(body)
		return &canned{status: 200, header: map[string]string{"Etag": `"` + hex.EncodeToString(sum[:]) + `"`, "X-Goog-Hash": "crc32c=" + crcOf(body)}} // documented
	case k == "abort": // GS: also again
		u.aborted = true
		return &canned{status: 204}
	case k == "list": // ZG: no checksum, and the marker of the last page is 0
		var b strings.Builder
		after := 0
		if v := query["part-number-marker"]; len(v) > 0 {
			after, _ = strconv.Atoi(v[0])
		}
		for _, n := range slices.Sorted(maps.Keys(u.parts)) {
			if n <= after {
				continue
			}
			sum := md5.Sum(u.parts[n])
			fmt.Fprintf(&b, `<Part><PartNumber>%d</PartNumber><LastModified>2026-03-19T15:08:24.743Z</LastModified><ETag>"%x"</ETag><Size>%d</Size></Part>`, n, sum, len(u.parts[n]))
		}
		return xmlReply("<ListPartsResult xmlns='http://doc.s3.amazonaws.com/2006-03-01'><NextPartNumberMarker>0</NextPartNumberMarker><IsTruncated>false</IsTruncated>" + b.String() + "</ListPartsResult>")
	}
	if !u.completed { // GS: a second completion succeeds, and writes nothing
		o := &recordedObject{name: u.name, components: len(u.parts)}
		for _, n := range slices.Sorted(maps.Keys(u.parts)) {
			o.content = append(o.content, u.parts[n]...)
		}
		u.made, u.completed = s.publish(o, ""), true
	}
	c := xmlReply("<CompleteMultipartUploadResult xmlns='" + s.namespace + "'><Location>http://bkt.storage.googleapis.com/" + u.name + "</Location><Bucket>bkt</Bucket><Key>" + u.name + "</Key><ETag>\"x-1\"</ETag></CompleteMultipartUploadResult>")
	c.header["X-Goog-Generation"], c.header["X-Goog-Hash"] = strconv.FormatInt(u.made.generation, 10), "crc32c="+crcOf(u.made.content)
	return c
}
