package fakegcstest_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs/fakegcstest"
)

// alter returns fakegcs with a changed behavior.
type alter func(gcs http.Handler) http.Handler

// asked changes requests.
func asked(change func(r *http.Request)) alter {
	return func(gcs http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			change(r)
			gcs.ServeHTTP(w, r)
		})
	}
}

// without removes parameters from the query.
func without(params ...string) alter {
	return asked(func(r *http.Request) {
		query := r.URL.Query()
		for _, p := range params {
			query.Del(p)
		}
		r.URL.RawQuery = query.Encode()
	})
}

// bare removes headers.
func bare(prefix string) alter {
	return asked(func(r *http.Request) {
		for name := range r.Header {
			if strings.HasPrefix(name, prefix) {
				r.Header.Del(name)
			}
		}
	})
}

// unaware renames a member in the JSON bodies of requests to an ignored one.
func unaware(member string) alter {
	return asked(func(r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		body = bytes.ReplaceAll(body, []byte(`"`+member+`"`), []byte(`"kind"`))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	})
}

// replied changes replies.
func replied(change func(r *http.Request, reply *httptest.ResponseRecorder)) alter {
	return func(gcs http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			gcs.ServeHTTP(rec, r)
			change(r, rec)
			rec.Header().Del("Content-Length")
			for name, values := range rec.Header() {
				w.Header()[name] = values
			}
			w.WriteHeader(rec.Code)
			_, _ = w.Write(rec.Body.Bytes())
		})
	}
}

// rewritten replaces matches in the bodies of replies.
func rewritten(pattern, by string) alter {
	re := regexp.MustCompile(pattern)
	return replied(func(_ *http.Request, reply *httptest.ResponseRecorder) {
		reply.Body = bytes.NewBuffer(re.ReplaceAll(reply.Body.Bytes(), []byte(by)))
	})
}

// instead replaces a status.
func instead(method string, was, is int) alter {
	return replied(func(r *http.Request, reply *httptest.ResponseRecorder) {
		if r.Method == method && reply.Code == was {
			reply.Code = is
		}
	})
}

// releasing removes holds before each delete.
func releasing(gcs http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "DELETE" && strings.Contains(r.URL.Path, "/o/") {
			release := httptest.NewRequest("PATCH", "http://"+r.Host+r.URL.EscapedPath(), strings.NewReader(`{"temporaryHold":false,"eventBasedHold":false}`))
			gcs.ServeHTTP(httptest.NewRecorder(), release)
		}
		gcs.ServeHTTP(w, r)
	})
}

// A server with one difference from fakegcs fails the cases about that difference, and
// no unrelated case.
func TestDifferencesShow(t *testing.T) {
	if testing.Short() {
		t.Skip("checks the cases")
	}
	cases := map[string]fakegcstest.Case{}
	for _, c := range fakegcstest.Cases() {
		cases[c.Name] = c
	}
	for name, test := range map[string]struct {
		alter alter
		fails string
	}{
		"a gap is 400":                  {instead("PUT", 503, 400), "gap"},
		"no Range in a 308":             {replied(func(_ *http.Request, reply *httptest.ResponseRecorder) { reply.Header().Del("Range") }), "chunks overlap cut-keeps-chunks"},
		"no component count":            {rewritten(`,\s*"componentCount": \d+`, ""), "compose compose-again compose-one compose-32"},
		"MD5 of composites":             {rewritten(`"componentCount"`, `"md5Hash": "AA==", "componentCount"`), "compose compose-one"},
		"sources that stay":             {unaware("deleteSourceObjects"), "compose-delete-sources compose-delete-versions compose-delete-held"},
		"preconditions of sources":      {unaware("objectPreconditions"), "compose-source-generation"},
		"holds that let go":             {releasing, "hold-temporary hold-event-based hold-insert hold-default"},
		"no default hold":               {unaware("defaultEventBasedHold"), "hold-default"},
		"no retention":                  {unaware("retentionPolicy"), "retention retention-present retention-event retention-temporary retention-versions"},
		"no versions":                   {unaware("versioning"), "versions versions-delete versions-restore bucket-patch"},
		"versions not listed":           {without("versions"), "versions versions-delete"},
		"no soft delete":                {unaware("softDeletePolicy"), "soft-delete soft-delete-replace restore"},
		"generations not looked at":     {without("generation"), "get delete-generation read versions"},
		"preconditions not looked at":   {without("ifGenerationMatch", "ifMetagenerationMatch"), "precondition-read precondition-upload precondition-patch precondition-delete precondition-late restore-refused bucket-preconditions"},
		"not-match is 412":              {instead("GET", 304, 412), "precondition-read bucket-preconditions"},
		"not-match is 412 for writes":   {instead("POST", 304, 412), "precondition-not-match-write"},
		"source preconditions":          {without("ifSourceGenerationMatch", "ifSourceMetagenerationMatch"), "rewrite-source-precondition"},
		"metageneration that stands":    {rewritten(`"metageneration": "\d+"`, `"metageneration": "1"`), "patch replace precondition-patch versions-patch bucket-patch"},
		"fields not looked at":          {without("fields"), "get-fields fields-upload fields-invalid list-fields bucket"},
		"no delimiter":                  {without("delimiter"), "list-delimiter list-pages xml-list"},
		"no pages":                      {without("maxResults", "max-keys", "max-parts", "max-uploads"), "list-pages xml-list-pages parts-list parts-uploads"},
		"no offsets":                    {without("startOffset", "endOffset"), "list-offsets"},
		"prefixes not looked at":        {without("prefix"), "bucket-list"},
		"a range not looked at":         {bare("Range"), "read-range gzip-as-stored xml-put"},
		"a body that stays as it came":  {bare("Content-Encoding"), "insert-gzip-in-flight"},
		"every error is JSON":           {rewritten(`^No such object.*`, `{"error": "$0"}`), "read-missing"},
		"everybody gets gzip":           {asked(func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") }), "gzip-transcoded gzip-not"},
		"no client gets gzip":           {bare("Accept-Encoding"), "gzip-as-stored"},
		"keys not looked at":            {bare("X-Goog-Encryption"), "key-read key-metadata key-not-needed key-malformed key-resumable key-rewrite key-compose parts-key"},
		"checksums shown without a key": {rewritten(`"keySha256"`, `"crc32c": "AAAAAA==", "keySha256"`), "key-metadata"},
		"hashes not looked at":          {bare("X-Goog-Hash"), "hash-bad media-hash-bad parts-hash xml-errors"},
		"hashes in metadata":            {unaware("crc32c"), "hash-in-metadata multipart-hash-bad multipart-trailer-bad compose-crc32c"},
		"no storage classes":            {unaware("storageClass"), "insert-storage-class insert-no-such-class insert-default-class rewrite-class compose-classes"},
		"no custom metadata":            {unaware("metadata"), "multipart patch metadata-limit copy rewrite rewrite-metadata restore"},
		"patches that merge nothing":    {rewritten(`"cacheControl": "no-store",`, ""), "patch copy multipart"},
		"copies that keep metadata": {asked(func(r *http.Request) {
			if strings.Contains(r.URL.Path, "/rewriteTo/") {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
			}
		}), "rewrite-metadata rewrite-class"},
		"rewrites that aren't done": {rewritten(`"done": true`, `"done": false`), "rewrite"},
		"errors without reasons":    {rewritten(`"reason"`, `"cause"`), "error-envelope delete patch-missing bucket-twice"},
		"errors that are JSON":      {rewritten(`<Code>.*</Code>`, `<Code>Error</Code>`), "xml-errors xml-delete xml-preconditions bucket-xml hold-xml parts-abort parts-order parts-unknown parts-none parts-small parts-hold"},
		"deletes that do nothing":   {asked(keep), "delete delete-generation versions-delete xml-delete parts-abort bucket-delete"},
		"full buckets that go":      {instead("DELETE", 409, 204), "bucket-delete bucket-delete-versions bucket-xml"},
		"nothing that is bad": {replied(func(_ *http.Request, reply *httptest.ResponseRecorder) {
			reply.Code = max(200, reply.Code-reply.Code/400*200)
		}), "compose-none name-limit name-newline name-dots parts-number malformed-range beyond-total names-disagree content-type-differs declared-length-differs start-body-type no-name multipart-md5-bad no-bucket no-such-bucket-insert insert-wrong-url unknown-session short-chunk short-chunk-known-total"},
		"sizes that are wrong":            {rewritten(`"size": "\d+"`, `"size": "7"`), "one-request empty-by-range media-empty finished-answers-again"},
		"boundaries with quotes":          {asked(quote), "multipart-quoted-boundary multipart-double-quotes"},
		"tokens not looked at":            {bare("X-Goog-Gcs-Idempotency-Token"), "token-insert token-insert-late token-insert-new token-other-body token-delete token-patch"},
		"one token":                       {asked(oneToken), "token-insert token-insert-new"},
		"no type of an upload":            {bare("X-Upload-Content-Type"), "content-type-header content-type-differs"},
		"no caches":                       {unaware("cacheControl"), "gzip-no-transform multipart"},
		"names that are taken":            {instead("POST", 409, 200), "bucket-twice"},
		"names that are cleaned":          {asked(cleanName), "name-parent"},
		"a project that isn't known":      {asked(refuseProject), "user-project"},
		"entity tags that change":         {replied(func(_ *http.Request, reply *httptest.ResponseRecorder) { reply.Header().Set("Etag", `"x"`) }), "parts parts-last"},
		"copies without metadata":         {bare("X-Goog-Meta-"), "xml xml-headers xml-copy parts metadata"},
		"XML conditions not looked at":    {bare("X-Goog-If-"), "xml-preconditions"},
		"multipart uploads without parts": {without("part-number-marker"), "parts-list"},
		"uploads without markers":         {without("key-marker", "upload-id-marker"), "parts-uploads"},
		"a 308 of HTML":                   {header("Content-Type", "text/plain; charset=utf-8", "text/html; charset=UTF-8"), "incomplete-reply location-order"},
		"no running hash":                 {header("X-Goog-Running-Hash", "*", ""), "incomplete-reply"},
		"a running hash of nothing": {replied(func(_ *http.Request, reply *httptest.ResponseRecorder) {
			if reply.Code == 308 && reply.Header().Get("Range") == "" {
				reply.Header().Set("X-Goog-Running-Hash", "crc32c=AAAAAA==")
			}
		}), "incomplete-reply"},
		"a sorted query of the session URI": {replied(func(_ *http.Request, reply *httptest.ResponseRecorder) {
			if uri, err := url.Parse(reply.Header().Get("Location")); err == nil && uri.Path != "" {
				uri.RawQuery = uri.Query().Encode()
				reply.Header().Set("Location", uri.String())
			}
		}), "location-order"},
		"no timeFinalized":            {rewritten(`(?m),\s*"timeFinalized": "[^"]*"`, ""), "final-reply time-decimals"},
		"objects that show the owner": {rewritten(`"etag":`, `"owner": {}, "etag":`), "final-reply"},
		"every status is overridden": {replied(func(r *http.Request, reply *httptest.ResponseRecorder) {
			if code := reply.Code; r.Header.Get("X-GUploader-No-308") != "" && code != 200 {
				reply.Code = 200
				reply.Header().Set("X-HTTP-Status-Code-Override", strconv.Itoa(code))
			}
		}), "override-only-308"},
		"a 499 without a body":      {rewritten(`(?s)^.*clientClosedRequest.*$`, ""), "cancel-reply"},
		"canceled once":             {instead("DELETE", 499, 204), "cancel cancel-reply"},
		"sessions that keep a name": {without("ifGenerationMatch"), "name-taken-later precondition-location location-order"},
		"errors without messages":   {rewritten(`"message": "[^"]*(\\"[^"]*)*"`, `"message": "Bad Request"`), "name-errors hash-bad-text multipart-hash-text multipart-hash-malformed multipart-one-part multipart-error-type cancel-reply precondition-location patch-parse-error"},
		"JSON errors are JSON": {replied(func(_ *http.Request, reply *httptest.ResponseRecorder) {
			if strings.HasPrefix(reply.Body.String(), "{") {
				reply.Header().Set("Content-Type", "application/json; charset=UTF-8")
			}
		}), "multipart-error-type name-errors"},
		"an error for each mistake":    {rewritten(`"reason": "invalid\w*"`, `"reason": "parseError"`), "multipart-error-type multipart-hash-malformed multipart-one-part patch-parse-error hash-bad-text"},
		"objects that all have a type": {rewritten(`"storageClass"`, `"contentType": "application/octet-stream", "storageClass"`), "insert-no-type rewrite-no-type"},
		"no name of the server":        {header("Server", "*", ""), "service-headers"},
		"no upload ID":                 {header("X-Guploader-Uploadid", "*", ""), "service-headers chunks"},
		"caches not spoken of":         {header("Cache-Control", "*", ""), "cache-headers location-order final-reply media-headers"},
		"everything may be cached":     {header("Cache-Control", "*", "public, max-age=3600"), "cache-headers location-order final-reply media-headers"},
		"no Vary":                      {header("Vary", "*", ""), "cache-headers xml-put-reply"},
		"no ETag":                      {header("Etag", "*", ""), "etag-header final-reply media-headers xml-read-headers xml-put-reply"},
		"an ETag of everything":        {replied(func(_ *http.Request, reply *httptest.ResponseRecorder) { reply.Header().Set("Etag", "CAE=") }), "etag-header"},
		"times without zeros":          {rewritten(`\.\d{3}Z`, ".12Z"), "time-decimals"},
		"all is escaped in links":      {rewritten(`'\(\)\*;`, "'()%2A%3B"), "link-escapes"},
		"a plus in links":              {rewritten(`%2B`, "+"), "link-escapes"},
		"412 without a location":       {rewritten(`,\s*"locationType": "header",\s*"location": "If-Match"`, ""), "precondition-location"},
		"not-match is 412 for a patch": {instead("PATCH", 304, 412), "not-match-reply"},
		"not-match is 412 for a put":   {instead("PUT", 304, 412), "not-match-reply"},
		"a 204 without a type":         {header("Content-Type", "application/json", ""), "delete-reply"},
		"a 204 that is XML": {replied(func(_ *http.Request, reply *httptest.ResponseRecorder) {
			if reply.Code == 204 && reply.Header().Get("Content-Type") == "" {
				reply.Header().Set("Content-Type", "application/xml")
			}
		}), "delete-reply"},
		"updates that merge": {asked(func(r *http.Request) {
			if r.Method == "PUT" && strings.HasPrefix(r.URL.Path, "/storage/") {
				r.Method = "PATCH"
			}
		}), "update-replaces"},
		"empty lists with items": {rewritten(`"kind": "storage#objects"`, `"kind": "storage#objects", "items": []`), "list-empty"},
		"empty offsets":          {asked(emptyOffset), "list-empty-parameters"},
		"tokens that are names":  {rewritten(`"nextPageToken": "[^"]*"`, `"nextPageToken": "Y29uZm9ybWFuY2U="`), "list-token"},
		"hashes in two lines":    {replied(splitHashes), "media-headers"},
		"reads that are shown":   {header("Content-Disposition", "attachment", ""), "media-headers"},
		"ranges on offer":        {replied(func(_ *http.Request, reply *httptest.ResponseRecorder) { reply.Header().Set("Accept-Ranges", "bytes") }), "media-headers"},
		"a hash of every read":   {replied(hashReads), "media-range-headers media-range-error"},
		"ranges that must be ranges": {asked(func(r *http.Request) {
			if r.Header.Get("Range") == "invalid" {
				r.Header.Set("Range", "bytes=99-")
			}
		}), "media-range-ignored"},
		"a 416 without the size":         {header("Content-Range", "bytes */9", ""), "media-range-error"},
		"errors of reads are plain text": {header("Content-Type", "text/html; charset=UTF-8", "text/plain; charset=utf-8"), "name-errors media-missing media-range-error multipart-error-type xml-put-reply"},
		"no hashes":                      {header("X-Goog-Hash", "*", ""), "media-headers xml-read-headers"},
		"XML errors without details":     {rewritten(`<Details>.*</Details>`, ""), "xml-error-details"},
		"a storage class of every reply": {replied(func(_ *http.Request, reply *httptest.ResponseRecorder) {
			reply.Header().Set("X-Goog-Storage-Class", "STANDARD")
		}), "xml-put-reply"},
		"metadata in capitals":      {rewritten(`"reviewer"`, `"Reviewer"`), "xml-metadata-case"},
		"one completion":            {completeOnce, "parts-complete-again"},
		"a marker on the last page": {rewritten(`<NextPartNumberMarker>0<`, "<NextPartNumberMarker>2<"), "parts-list-last"},
		"conditions of a completion": {replied(func(r *http.Request, reply *httptest.ResponseRecorder) {
			if r.URL.Query().Has("uploadId") && r.Header.Get("X-Goog-If-Generation-Match") != "" {
				reply.Code = 412
			}
		}), "parts-precondition"},
		"** needs a directory": {asked(needDirectory), "list-glob"},
	} {
		t.Run(name, func(t *testing.T) {
			_, target := serveGCS(t, test.alter)
			target.Patience = time.Nanosecond
			if err := cases["media"].Check(t.Context(), target); err != nil {
				t.Errorf("case media: %v", err)
			}
			for _, failing := range strings.Fields(test.fails) {
				c, ok := cases[failing]
				if !ok {
					t.Fatalf("no case %s", failing)
				}
				if err := c.Check(t.Context(), target); err == nil || strings.HasPrefix(err.Error(), "clean up") {
					t.Errorf("case %s holds (%v)", failing, err)
				}
			}
		})
	}
}

// header replaces a value of a header of replies, or any with "*". An empty value removes it.
func header(name, was, is string) alter {
	return replied(func(_ *http.Request, reply *httptest.ResponseRecorder) {
		switch got := reply.Header().Get(name); {
		case got == "" || was != "*" && got != was:
		case is == "":
			reply.Header()[http.CanonicalHeaderKey(name)] = nil // net/http must not add its own
		default:
			reply.Header().Set(name, is)
		}
	})
}

// splitHashes sends each hash in a line of its own.
func splitHashes(_ *http.Request, reply *httptest.ResponseRecorder) {
	if crc, md5, ok := strings.Cut(reply.Header().Get("X-Goog-Hash"), ","); ok {
		reply.Header()["X-Goog-Hash"] = []string{crc, md5}
	}
}

// hashReads sends a hash with every read.
func hashReads(r *http.Request, reply *httptest.ResponseRecorder) {
	if r.Method == "GET" && r.URL.Query().Get("alt") == "media" {
		reply.Header().Set("X-Goog-Hash", "crc32c=AAAAAA==")
	}
}

// emptyOffset ends a listing at an empty endOffset, that is, before the first name.
func emptyOffset(r *http.Request) {
	query := r.URL.Query()
	if query.Has("endOffset") && query.Get("endOffset") == "" {
		query.Set("endOffset", "\x00")
		r.URL.RawQuery = query.Encode()
	}
}

// needDirectory makes **/ match no names without a slash before the rest.
func needDirectory(r *http.Request) {
	r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, "**/ab", "*/**/b/ab")
}

// completeOnce refuses the second completion of a multipart upload.
func completeOnce(gcs http.Handler) http.Handler {
	var completed sync.Map
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.URL.Query().Get("uploadId"); id != "" && r.Method == "POST" {
			if _, again := completed.LoadOrStore(id, true); again {
				http.Error(w, "<Error><Code>NoSuchUpload</Code></Error>", http.StatusNotFound)
				return
			}
		}
		gcs.ServeHTTP(w, r)
	})
}

// oneToken replaces every idempotency token by the same one.
func oneToken(r *http.Request) {
	if r.Header.Get("X-Goog-Gcs-Idempotency-Token") != "" {
		r.Header.Set("X-Goog-Gcs-Idempotency-Token", "one")
	}
}

// cleanName cleans an object name as if it were a path.
func cleanName(r *http.Request) {
	const odd, clean = "%2Fa%2F..%2Fb", "%2Fb"
	r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, odd, clean)
	r.URL.RawPath = strings.ReplaceAll(r.URL.EscapedPath(), odd, clean)
	r.URL.Path, _ = url.PathUnescape(r.URL.RawPath) // valid: it was escaped
}

// quote makes the quotes of a boundary part of it.
func quote(r *http.Request) {
	r.Header.Set("Content-Type", strings.NewReplacer(`'`, "-", `"`, "-").Replace(r.Header.Get("Content-Type")))
}

// keep ignores every delete, except that of an upload session.
func keep(r *http.Request) {
	if r.Method == "DELETE" && !r.URL.Query().Has("upload_id") {
		r.Method = "GET"
	}
}

// refuseProject makes every request for a project fail.
func refuseProject(r *http.Request) {
	if r.URL.Query().Has("userProject") {
		r.URL.Path, r.URL.RawPath = "/storage/v1/nowhere", ""
	}
}
