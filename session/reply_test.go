package session_test

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gcsup/internal/objectmeta"
	"gcsup/internal/wiretest"
	"gcsup/session"
	"gcsup/session/internal/secrettest"
)

// TestOpenReplies checks both forms of "Resume Incomplete" with every form of
// Range.
func TestOpenReplies(t *testing.T) {
	const plain = "HTTP/1.1 308 Resume Incomplete\n%sContent-Length: 0\n\n"
	const overridden = "HTTP/1.1 200 OK\nX-HTTP-Status-Code-Override: 308\n%sContent-Length: 0\n\n"
	for _, c := range []struct {
		header string
		want   int64
	}{
		{"", -1},
		{"Range: bytes=0-0\n", 1},
		{"Range: bytes=0-262143\n", q},
		{"range: bytes=0-262144\n", q + 1},
		{"Range:   bytes=0-9  \n", 10},
		{fmt.Sprintf("Range: bytes=0-%d\n", 5<<40-1), 5 << 40},
		{fmt.Sprintf("Range: bytes=0-%d\n", int64(1)<<62-1), 1 << 62},
		{fmt.Sprintf("Range: bytes=0-%d\n", int64(math.MaxInt64)), -1},
		{"Range: bytes=0-99999999999999999999\n", -1},
		{"Range: bytes=0--1\n", -1},
		{"Range: bytes=0-+1\n", -1},
		{"Range: bytes=0-\n", -1},
		{"Range: bytes=1-9\n", -1},
		{"Range: bytes=0-9,20-29\n", -1},
		{"Range: bytes 0-9\n", -1},
		{"Range: 0-9\n", -1},
		{"Range: bytes=0-9x\n", -1},
		{"Range: bytes=0-1_0\n", -1},
		{"Range: bytes=0-0x9\n", -1},
	} {
		for _, shape := range []string{plain, overridden} {
			w := wiretest.New(t, fmt.Sprintf(shape, c.header))
			r := w.Client().Query(t.Context(), uriAt(t, w.Endpoint()))
			if r.Status != 308 || r.Committed != c.want || r.Err != nil {
				t.Errorf("%q: status %d, committed %d, want 308, %d", c.header, r.Status, r.Committed, c.want)
			}
		}
	}
}

// TestOpenReplyWithBody checks that an unexpected body is ignored.
func TestOpenReplyWithBody(t *testing.T) {
	w := wiretest.New(t, "HTTP/1.1 308 Resume Incomplete\nRange: bytes=0-9\nContent-Length: 1000\n\ncut")
	if r := w.Client().Query(t.Context(), uriAt(t, w.Endpoint())); r.Status != 308 || r.Committed != 10 {
		t.Errorf("%+v, want 308 with 10 bytes", r)
	}
}

func TestHashesOfCommittedBytes(t *testing.T) {
	sum := md5.Sum([]byte("prefix"))
	crc := uint32(0x01020304)
	for _, c := range []struct {
		header string
		crc    *uint32
		md5    bool
	}{
		{"", nil, false},
		{"X-Goog-Running-Hash: crc32c=AQIDBA==\n", &crc, false},
		{"X-Goog-Running-Hash: md5=AAAA, crc32c=AQIDBA==\n", &crc, false},
		{"X-Goog-Running-Hash: md5=AAAA\nX-Goog-Running-Hash: crc32c=AQIDBA==\n", &crc, false},
		{"X-Goog-Running-Hash: crc32c=AQID\n", nil, false},
		{"X-Goog-Running-Hash: crc32c=????\n", nil, false},
		{fmt.Sprintf("X-Range-MD5: %x\n", sum), nil, true},
		{fmt.Sprintf("X-Range-MD5: %X\n", sum), nil, true},
		{fmt.Sprintf("X-Range-MD5: %x\n", sum[1:]), nil, false},
		{"X-Range-MD5: zz\n", nil, false},
	} {
		w := wiretest.New(t, "HTTP/1.1 308 Resume Incomplete\nRange: bytes=0-5\n"+c.header+"Content-Length: 0\n\n")
		r := w.Client().Query(t.Context(), uriAt(t, w.Endpoint()))
		if !reflect.DeepEqual(r.RunningCRC32C, c.crc) {
			t.Errorf("%q: CRC32C %v, want %v", c.header, r.RunningCRC32C, c.crc)
		}
		if (r.RangeMD5 != nil) != c.md5 || c.md5 && *r.RangeMD5 != sum {
			t.Errorf("%q: MD5 %v %x, want %v %x", c.header, r.RangeMD5 != nil, r.RangeMD5, c.md5, sum)
		}
	}
}

// TestFinishedReplies checks which replies describe an object.
func TestFinishedReplies(t *testing.T) {
	const resource = `{"kind":"storage#object","bucket":"bucket","name":"object","generation":"1700000000000001","metageneration":"1","size":"262145","crc32c":"AQIDBA==","contentType":"text/plain","metadata":{"k":"v"},"acl":[]}`
	object := &session.Object{Bucket: "bucket", Name: "object", Generation: 1700000000000001, Metageneration: 1, Size: q + 1, CRC32C: 0x01020304, HasCRC32C: true, ContentType: "text/plain", Metadata: map[string]string{"k": "v"}, ACL: []session.ACLRule{}}
	json := func(body string) string {
		return fmt.Sprintf("Content-Type: application/json; charset=UTF-8\nContent-Length: %d\n\n%s", len(body), body)
	}
	xml := func(header string) string { return header + "Content-Length: 0\n\n" }
	for _, c := range []struct {
		name, rest string
		want       *session.Object
	}{
		{"JSON", json(resource), object},
		{"JSON without a length", "\n" + resource, object},
		{"JSON with numbers", json(`{"size":262145,"generation":1700000000000001}`), &session.Object{Generation: 1700000000000001, Size: q + 1}},
		{"an empty object", json(`{"size":"0","crc32c":"AAAAAA=="}`), &session.Object{HasCRC32C: true}},
		{"an invalid CRC32C", json(`{"size":"5","crc32c":"xyz"}`), &session.Object{Size: 5}},
		{"empty", xml(""), nil},
		{"cut", "Content-Length: 1000\n\n" + resource[:100], nil},
		{"cut at the last byte", fmt.Sprintf("Content-Length: %d\n\n%s", len(resource), resource[:len(resource)-1]), nil},
		{"cut, but whole JSON", fmt.Sprintf("Content-Length: %d\n\n%s", len(resource)+10, resource), nil},
		{"cut between chunks", "Transfer-Encoding: chunked\n\n5\n{\"siz\n", nil},
		{"HTML", json("<html><body>Welcome</body></html>"), nil},
		{"text", json("OK"), nil},
		{"null", json("null"), nil},
		{"a list", json("[]"), nil},
		{"no size", json(`{"generation":"5"}`), nil},
		{"no size, but a checksum: an empty object of Google's test bench", json(`{"generation":"5","crc32c":"AAAAAA=="}`), &session.Object{Generation: 5, HasCRC32C: true}},
		{"a checksum alone", json(`{"crc32c":"AAAAAA=="}`), nil},
		{"an invalid size", json(`{"size":"many"}`), nil},
		{"a negative size", json(`{"size":"-1"}`), nil},
		{"a fraction", json(`{"size":"1.5"}`), nil},
		{"a size over 2^63", json(`{"size":"9223372036854775808"}`), nil},
		{"an error with status 200", json(`{"error":{"code":500}}`), nil},
		{"headers, as sessions of the XML API end", xml("x-goog-generation: 5\nx-goog-metageneration: 1\nx-goog-stored-content-length: 262145\nx-goog-hash: crc32c=AQIDBA==\nx-goog-hash: md5=AAAA\n"),
			&session.Object{Generation: 5, Metageneration: 1, Size: q + 1, CRC32C: 0x01020304, HasCRC32C: true}},
		{"headers without a hash", xml("x-goog-generation: 5\nx-goog-stored-content-length: 0\n"), &session.Object{Generation: 5}},
		{"headers without a generation", xml("x-goog-stored-content-length: 5\n"), nil},
		{"headers without a length", xml("x-goog-generation: 5\n"), nil},
		{"headers with a negative length", xml("x-goog-generation: 5\nx-goog-stored-content-length: -5\n"), nil},
		{"another override", "X-HTTP-Status-Code-Override: 404\n" + json(resource), object},
	} {
		for _, code := range []int{200, 201} {
			w := wiretest.New(t, fmt.Sprintf("HTTP/1.1 %d Whatever\n%s", code, c.rest))
			r := w.Client().Query(t.Context(), uriAt(t, w.Endpoint()))
			if r.Status != code || r.Err != nil || r.Committed != -1 {
				t.Errorf("%s: %+v, want status %d", c.name, r, code)
			}
			if !reflect.DeepEqual(r.Object, c.want) {
				t.Errorf("%s: object %+v, want %+v", c.name, r.Object, c.want)
			}
		}
	}
}

// TestRefusals checks error bodies in JSON, text and HTML, and empty ones.
func TestRefusals(t *testing.T) {
	const gap = "Invalid request.  According to the Content-Range header, the upload offset is 524288 byte(s), which exceeds already uploaded size of 262144 byte(s)."
	for _, c := range []struct {
		name, contentType, body string
		code                    int
		reason, message         string
		inner                   int
	}{
		{"nothing", "", "", 503, "", "", 0},
		{"JSON", "application/json; charset=UTF-8", `{"error":{"code":403,"message":"No\nway.","errors":[{"message":"No way.","domain":"global","reason":"forbidden"},{"reason":"second"}]}}`, 403, "forbidden", "No way.", 0},
		{"JSON without errors", "application/json", `{"error":{"code":503,"message":"Try later."}}`, 503, "", "Try later.", 0},
		{"JSON that is not an error", "application/json", `{"hello":"world"}`, 500, "", `{"hello":"world"}`, 0},
		{"JSON of another shape", "application/json", `{"error":"invalid_grant"}`, 400, "", `{"error":"invalid_grant"}`, 0},
		{"JSON, cut", "application/json", `{"error":{"code":403,"mess`, 403, "", `{"error":{"code":403,"mess`, 0},
		{"text, a gap", "text/plain; charset=utf-8", gap, 503, "", strings.ReplaceAll(gap, ".  ", ". "), 0},
		{"HTML", "text/html; charset=UTF-8", "<!DOCTYPE html><title>Error 502</title>", 502, "", "", 0},
		{"HTML with type text", "text/plain", "  <html>oops", 502, "", "", 0},
		{"text with type HTML", "text/html", "Not Found", 404, "", "", 0},
		{"410 around 503", "application/json", `{"error":{"code":503,"message":"Backend Error","errors":[{"reason":"backendError"}]}}`, 410, "backendError", "Backend Error", 503},
		{"410 around 412", "application/json", `{"error":{"code":412,"message":"Precondition Failed","errors":[{"reason":"conditionNotMet"}]}}`, 410, "conditionNotMet", "Precondition Failed", 412},
		{"410, text", "text/plain", "gone", 410, "", "gone", 0},
		{"another code inside another status", "application/json", `{"error":{"code":412,"message":"m"}}`, 500, "", "m", 0},
		{"no UTF-8", "text/plain", "\xff\xfe\x00bad", 500, "", "? bad", 0},
		{"control characters", "text/plain", "\x1b[31mred\r\n\ttab\x7f", 500, "", "[31mred tab", 0},
		{"499", "", "", 499, "", "", 0},
		{"JSON of Google's test bench, without an envelope", "application/json", `{"code":404,"message":"Blob obj does not exist."}`, 404, "", "Blob obj does not exist.", 0},
	} {
		w := wiretest.New(t, fmt.Sprintf("HTTP/1.1 %d Whatever\nContent-Type: %s\nContent-Length: %d\n\n", c.code, c.contentType, len(c.body))+c.body)
		if strings.Contains(c.body, "\n") && c.code != 403 {
			body := c.body
			w = wiretest.NewFunc(t, func(conn net.Conn, _ string) {
				_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d Whatever\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", c.code, c.contentType, len(body), body)
			})
		}
		r := w.Client().Query(t.Context(), uriAt(t, w.Endpoint()))
		if r.Status != c.code || r.Reason != c.reason || r.Message != c.message || r.Inner != c.inner || r.Err != nil {
			t.Errorf("%s: status %d, reason %q, message %q, inner %d, want %d, %q, %q, %d", c.name, r.Status, r.Reason, r.Message, r.Inner, c.code, c.reason, c.message, c.inner)
		}
		if from := json.Valid([]byte(c.body)) && strings.Contains(c.body, `"code":`); r.FromService != from {
			t.Errorf("%s: from the service: %v", c.name, r.FromService)
		}
	}
}

// TestRefusalsThatEchoASecret checks that a Reply does not have a secret of the request if the server echoes it,
// not even a part of it at the end of a shortened text: the session, whose ID may be escaped in its URI, or the
// encryption key.
func TestRefusalsThatEchoASecret(t *testing.T) {
	const id, escaped = "S3cret/Id+==", "S3cret%2FId%2B%3D%3D"
	k := testKey(t, 'K')
	key := base64.StdEncoding.EncodeToString(k.Bytes())
	path := "/upload/storage/v1/b/bucket/o?uploadType=resumable&name=object&upload_id=" + escaped
	echoes := map[string]string{
		"the URI":              session.DefaultEndpoint + path,
		"the path":             path,
		"the query":            "?upload_id=" + escaped,
		"the ID":               "upload " + id + " is busy",
		"the ID as in the URI": "upload " + escaped + " is busy",
		"the ID, in JSON":      `{"error":{"code":503,"message":"upload ` + id + `","errors":[{"reason":"` + escaped + `"}]}}`,
		"the ID, escaped":      `{"error":{"code":503,"message":"x\u0026upload_id=` + escaped + `"}}`,
		"the key":              key,
		"the key, in JSON":     `{"error":{"code":400,"message":"` + key + `"}}`,
	}
	for n := 270; n <= 300; n++ {
		echoes[fmt.Sprintf("the ID, after %d characters", n)] = strings.Repeat("x", n) + escaped
		echoes[fmt.Sprintf("the key, after %d characters", n)] = strings.Repeat("x", n) + key
	}
	body := ""
	client := wiretest.NewClient(t, &http.Client{Transport: wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method == "POST" && body == "" {
			return wiretest.Response(200, http.Header{"Location": {session.DefaultEndpoint + path}}, ""), nil
		}
		return wiretest.Response(503, http.Header{"Content-Type": {"text/plain"}}, body), nil
	})}, session.DefaultEndpoint)
	spec := session.Spec{Bucket: "bucket", Object: "object", EncryptionKey: k}
	uri := client.Start(t.Context(), spec, -1).URI
	for name, echo := range echoes {
		body = echo
		r := client.WithEncryptionKey(k).Query(t.Context(), uri)
		_, a := session.Decide(session.State{Size: 5}, r)
		for what, text := range map[string]string{
			"message": r.Message, "reason": r.Reason, "reply": fmt.Sprintf("%+v", r), "error": fmt.Sprintf("%v %+v", a.Err, *a.Err),
			"message at the start": client.Start(t.Context(), spec, 5).Message,
		} {
			if strings.Contains(text, "S3cret") && !strings.HasPrefix(what, "message at") || strings.Contains(text, key[:12]) {
				t.Errorf("%s: the %s contains the secret: %s", name, what, text)
			}
		}
		if r.Status != 503 || r.Message == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestEndlessBody checks that at most 64 KiB of an error's body are read.
func TestEndlessBody(t *testing.T) {
	for _, c := range []struct {
		status string
		max    int
	}{{"503 Busy", 128 << 10}, {"200 OK", 2 << 20}, {"308 Resume Incomplete\r\nRange: bytes=0-9", 128 << 10}} {
		read := 0
		client := wiretest.NewClient(t, &http.Client{Transport: wiretest.RoundTrip(func(*http.Request) (*http.Response, error) {
			var code int
			_, _ = fmt.Sscan(c.status, &code)
			resp := wiretest.Response(code, http.Header{"Range": {"bytes=0-9"}}, "")
			resp.ContentLength = -1
			resp.Body = io.NopCloser(readFunc(func(p []byte) (int, error) {
				for i := range p {
					p[i] = 'x'
				}
				read += len(p)
				return len(p), nil
			}))
			return resp, nil
		})}, "")
		r := client.Query(t.Context(), freshURI(t))
		if read > c.max {
			t.Errorf("%s: %d bytes of the body were read, want %d at most", c.status, read, c.max)
		}
		if len(r.Message) > 310 || r.Object != nil {
			t.Errorf("%s: message of %d bytes, object %v", c.status, len(r.Message), r.Object)
		}
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestRetryAfterHeader(t *testing.T) {
	for _, c := range []struct {
		header   string
		min, max time.Duration
	}{
		{"", 0, 0},
		{"Retry-After: 7\n", 7 * time.Second, 7 * time.Second},
		{"Retry-After: 0\n", 0, 0},
		{"Retry-After: -7\n", 0, 0},
		{"Retry-After: soon\n", 0, 0},
		{"Retry-After: 99999999999999999999\n", time.Hour, math.MaxInt64},
		{"Retry-After: " + time.Now().Add(time.Hour).UTC().Format(http.TimeFormat) + "\n", time.Minute, time.Hour}, // even if the test is slow
		{"Retry-After: " + time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat) + "\n", 0, 0},
	} {
		w := wiretest.New(t, "HTTP/1.1 503 Busy\n"+c.header+"Content-Length: 0\n\n")
		r := w.Client().Query(t.Context(), uriAt(t, w.Endpoint()))
		if r.Status != 503 || r.RetryAfter < c.min || r.RetryAfter > c.max {
			t.Errorf("%q: %v, want %v to %v", c.header, r.RetryAfter, c.min, c.max)
		}
	}
}

func TestCanceled(t *testing.T) {
	const marked = "X-GUploader-UploadID: x\n"
	for _, c := range []struct {
		code   int
		header string
		want   bool
	}{
		{499, "", true}, {499, marked, true}, {404, marked, true}, {410, marked, true},
		{404, "", false}, {410, "", false}, // of something on the way
		{204, "", false}, {200, marked, false}, {401, marked, false}, {503, marked, false},
	} {
		w := wiretest.New(t, fmt.Sprintf("HTTP/1.1 %d Whatever\n%sContent-Length: 0\n\n", c.code, c.header))
		if r := w.Client().Cancel(t.Context(), uriAt(t, w.Endpoint())); c.code != 204 && r.Status != c.code || r.Canceled() != c.want {
			t.Errorf("%d %q: %+v: Canceled() = %v, want %v", c.code, c.header, r, r.Canceled(), c.want)
		}
	}
	if (session.Reply{Op: session.OpCancel}).Canceled() {
		t.Error("Canceled() without a reply = true, want false")
	}
}

// FuzzReply checks that any HTTP response gives a bounded, printable Reply
// without the secret, and that Decide accepts it.
func FuzzReply(f *testing.F) {
	f.Add(308, "bytes=0-262143", "", "", "", "")
	f.Add(200, "", "", "", "application/json", `{"size":"5"}`)
	f.Add(200, "bytes=0-9", "308", "", "", "")
	f.Add(503, "", "", "7", "text/plain", gapMessage)
	f.Add(410, "", "", "Wed, 21 Oct 2015 07:28:00 GMT", "", `{"error":{"code":412,"errors":[{"reason":"r"}]}}`)
	f.Add(500, "", "", "", "text/html", "<html>"+secrettest.ID)
	uri := freshURI(f)
	f.Fuzz(func(t *testing.T, code int, rng, override, retryAfter, contentType, body string) {
		if code < 200 || code > 599 {
			return
		}
		client := wiretest.NewClient(t, &http.Client{Transport: wiretest.RoundTrip(func(*http.Request) (*http.Response, error) {
			h := http.Header{}
			h.Set("Range", rng)
			h.Set("X-Http-Status-Code-Override", override)
			h.Set("Retry-After", retryAfter)
			h.Set("Content-Type", contentType)
			h.Set("X-Goog-Running-Hash", body)
			h.Set("X-Range-Md5", body)
			return wiretest.Response(code, h, body), nil
		})}, "")
		r := client.Query(t.Context(), uri)
		if r.Committed < -1 || r.Committed >= 0 && r.Status != 308 || r.RetryAfter < 0 {
			t.Errorf("numbers out of range: %+v", r)
		}
		if r.Committed > 0 && rng != fmt.Sprintf("bytes=0-%d", r.Committed-1) && !strings.Contains(rng, "-0") && strings.TrimSpace(rng) == rng {
			t.Errorf("Range %q: %d", rng, r.Committed)
		}
		for _, text := range []string{r.Message, r.Reason} {
			if len(text) > 310 || !utf8.ValidString(text) || strings.ContainsAny(text, "\r\n\x00\x1b") || strings.Contains(text, secrettest.ID) {
				t.Errorf("message or reason %q", text)
			}
		}
		if r.Object != nil && (r.Object.Size < 0 || r.Status != 200 && r.Status != 201) {
			t.Errorf("object %+v", r.Object)
		}
		s, a := session.Decide(session.State{Size: 2 * q, Committed: q, Sent: q}, r)
		if s.Committed < q || s.Committed > s.Sent || s.Sent > s.Size || a.Step == session.Fail && a.Err.Kind == nil {
			t.Errorf("%+v\n%+v", s, a)
		}
	})
}

// TestParseWholeObject checks that an Object has every field of a reply.
func TestParseWholeObject(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(1_700_000_000+s, 0).UTC() }
	text := func(s int64) string { return at(s).Format(time.RFC3339) }
	body := fmt.Sprintf(`{"kind":"storage#object","bucket":"b","name":"o","generation":"5","metageneration":"2","size":"3","crc32c":"AQIDBA==",
		"md5Hash":"AQI=","etag":"e","mediaLink":"m","selfLink":"s","contentType":"a/b","contentEncoding":"gzip","contentDisposition":"inline",
		"contentLanguage":"de","cacheControl":"no-store","storageClass":"COLDLINE","metadata":{"goog-reserved-file-mtime":"7","gcsup-uncompressed-size":"9","k":"v"},
		"customTime":%q,"contexts":{"custom":{"k":{"value":"v","createTime":%q,"updateTime":%q}}},"componentCount":4,
		"acl":[{"kind":"storage#objectAccessControl","entity":"project-owners-1","role":"OWNER","entityId":"i","domain":"d","email":"m","projectTeam":{"projectNumber":"1","team":"owners"}}],
		"owner":{"entity":"user-x","entityId":"i"},"kmsKeyName":"key","customerEncryption":{"encryptionAlgorithm":"AES256","keySha256":"sum"},
		"temporaryHold":true,"eventBasedHold":true,"retention":{"mode":"Locked","retainUntilTime":%q},"retentionExpirationTime":%q,
		"timeCreated":%q,"timeFinalized":%q,"updated":%q,"timeStorageClassUpdated":%q,"timeDeleted":%q,"softDeleteTime":%q,"hardDeleteTime":%q,
		"restoreToken":"r","aFieldOfNextYear":{"x":[1]}}`,
		text(1), text(2), text(3), text(4), text(5), text(6), text(7), text(8), text(9), text(10), text(11), text(12))
	want := session.Object{
		Bucket: "b", Name: "o", Generation: 5, Metageneration: 2, Size: 3, CRC32C: 0x01020304, HasCRC32C: true,
		MD5: []byte{1, 2}, Etag: "e", MediaLink: "m", SelfLink: "s", ContentType: "a/b", ContentEncoding: "gzip", ContentDisposition: "inline",
		ContentLanguage: "de", CacheControl: "no-store", StorageClass: "COLDLINE", Metadata: map[string]string{"k": "v", objectmeta.FileModTime: "7", objectmeta.UncompressedSize: "9"},
		CustomTime: at(1), ComponentCount: 4, Contexts: &session.ObjectContexts{Custom: map[string]session.ObjectCustomContextPayload{
			"k": {Value: "v", CreateTime: at(2), UpdateTime: at(3)},
		}},
		ACL: []session.ACLRule{{
			Entity: "project-owners-1", Role: session.RoleOwner, EntityID: "i", Domain: "d", Email: "m",
			ProjectTeam: &session.ProjectTeam{ProjectNumber: "1", Team: "owners"},
		}},
		Owner: "user-x", KMSKeyName: "key", CustomerKeySHA256: "sum", TemporaryHold: true, EventBasedHold: true,
		Retention: &session.Retention{Mode: session.RetentionLocked, RetainUntil: at(4)}, RetentionExpirationTime: at(5),
		Created: at(6), Finalized: at(7), Updated: at(8), StorageClassUpdated: at(9), Deleted: at(10), SoftDeleteTime: at(11), HardDeleteTime: at(12),
		RestoreToken: "r", FileModTime: time.Unix(7, 0), Gzip: true, UncompressedSize: 9,
	}
	for i, v := 0, reflect.ValueOf(want); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("the test has no value for %s", v.Type().Field(i).Name)
		}
	}
	w := wiretest.New(t, fmt.Sprintf("HTTP/1.1 200 OK\nContent-Length: %d\n\n%s", len(strings.ReplaceAll(body, "\n", "\r\n")), body))
	if got := w.Client().Query(t.Context(), uriAt(t, w.Endpoint())).Object; got == nil || !reflect.DeepEqual(*got, want) {
		t.Errorf("object = %+v\nwant %+v", got, want)
	}
}

// TestParseObjectIgnoresOtherTypes checks that a value of an unknown type hides
// neither the object nor its other fields.
func TestParseObjectIgnoresOtherTypes(t *testing.T) {
	for _, field := range []string{
		`"timeCreated":"soon"`, `"metadata":{"k":5}`, `"metadata":[1]`, `"acl":{"entity":"x"}`, `"acl":[{"entity":5}]`, `"owner":"x"`,
		`"md5Hash":"?"`, `"contexts":{"custom":{"k":"v"}}`, `"componentCount":"many"`, `"metageneration":"x"`, `"temporaryHold":"yes"`,
		`"retention":{"retainUntilTime":5}`, `"contentType":5`,
	} {
		body := `{` + field + `,"name":"o","generation":"5","size":"3","crc32c":"AQIDBA==","etag":"e"}`
		w := wiretest.New(t, fmt.Sprintf("HTTP/1.1 200 OK\nContent-Length: %d\n\n%s", len(body), body))
		got := w.Client().Query(t.Context(), uriAt(t, w.Endpoint())).Object
		want := session.Object{Name: "o", Generation: 5, Size: 3, CRC32C: 0x01020304, HasCRC32C: true, Etag: "e"}
		if got == nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v", field, got)
		}
	}
}
