package multipart_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"gcsup/internal/breaker"
	"gcsup/internal/multipart"
	"gcsup/internal/wiretest"
	"gcsup/session"
)

// uploadID is the ID of the multipart upload of the tests.
const uploadID = "ABPtcPqS3cretUpl0adId_-x7"

func noUpload(r session.Reply) bool {
	return r.Status == 404 && r.FromService && r.Reason == "NoSuchUpload"
}

func hasID(text string) bool { return strings.Contains(text, uploadID) }

// uploadPath is the path of the multipart upload of the tests.
const uploadPath = "/bucket/dir%2Fo%20bject?uploadId=" + uploadID

var spec = session.Spec{
	Bucket: "bucket", Object: "dir/o bject", ContentType: "text/plain", ContentDisposition: "inline", CacheControl: "no-store",
	StorageClass: "NEARLINE", Metadata: map[string]string{"owner": "Ann"}, CustomTime: time.Unix(1e9, 0), UserProject: "payer",
	KMSKeyName: "projects/p/locations/l/keyRings/r/cryptoKeys/k",
}

const started = "<?xml version='1.0'?><InitiateMultipartUploadResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/'><Bucket>bucket</Bucket><Key>dir/o bject</Key><UploadId>" + uploadID + "</UploadId></InitiateMultipartUploadResult>"

// xmlReply returns the bytes of a reply.
func xmlReply(status int, header, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d x\nContent-Type: application/xml\n%sContent-Length: %d\n\n%s", status, header, len(body), body)
}

// upload starts a multipart upload with the first reply of w, and returns its URI.
func upload(t *testing.T, w *wiretest.Wire) session.URI {
	t.Helper()
	r := multipart.Start(t.Context(), w.Client(), spec)
	if r.Status != 200 || r.URI.IsZero() {
		t.Fatalf("start: %+v", r)
	}
	return r.URI
}

// Each exchange of a multipart upload has the documented method, URL, headers and body.
func TestRequests(t *testing.T) {
	t.Parallel()
	w := wiretest.New(t, xmlReply(200, "", started),
		xmlReply(200, "ETag: \"abc\"\nX-Goog-Hash: crc32c=AAAAAQ==\n", ""),
		xmlReply(200, "", "<ListPartsResult><IsTruncated>true</IsTruncated><Part><PartNumber>3</PartNumber><ETag>\"abc\"</ETag><Size>5</Size></Part></ListPartsResult>"),
		xmlReply(200, "X-Goog-Generation: 7\nX-Goog-Hash: crc32c=AAAAAQ==\n", "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"),
		xmlReply(204, "", ""))
	c := w.Client()
	uri := upload(t, w)
	etag, r := multipart.PutPart(t.Context(), c, spec, uri, 3, 5, 1, strings.NewReader("bytes"))
	if etag != `"abc"` || r.Status != 200 || r.Sent != 5 || r.Err != nil {
		t.Errorf("part: %q, %+v", etag, r)
	}
	parts, more, r := multipart.List(t.Context(), c, spec, uri, 2)
	if want := (multipart.Part{Number: 3, ETag: `"abc"`, Size: 5}); r.Status != 200 || !more || len(parts) != 1 || parts[0] != want {
		t.Errorf("parts: %+v, %v, %+v", parts, more, r)
	}
	r = multipart.Complete(t.Context(), c, spec, uri, parts)
	if o := r.Object; r.Status != 200 || o == nil || o.Generation != 7 || o.Size != 5 || !o.HasCRC32C || o.CRC32C != 1 {
		t.Errorf("complete: %+v", r)
	}
	if r := multipart.Abort(t.Context(), c, spec, uri); r.Status != 204 || r.Err != nil || r.Retryable() {
		t.Errorf("abort: %+v", r)
	}
	want := []string{
		"POST /bucket/dir%2Fo%20bject?uploads HTTP/1.1", "PUT " + uploadPath + "&partNumber=3 HTTP/1.1", "GET " + uploadPath + "&part-number-marker=2 HTTP/1.1",
		"POST " + uploadPath + " HTTP/1.1", "DELETE " + uploadPath + " HTTP/1.1",
	}
	for i, request := range w.Got() {
		if !strings.HasPrefix(request, want[i]) || !strings.Contains(request, "\nX-Goog-User-Project: payer\n") {
			t.Errorf("request %d:\n%s\nwant %s", i, request, want[i])
		}
	}
	for i, headers := range map[int][]string{
		0: {
			"Content-Type: text/plain", "Content-Disposition: inline", "Cache-Control: no-store", "X-Goog-Storage-Class: NEARLINE",
			"X-Goog-Meta-Owner: Ann", "X-Goog-Custom-Time: 2001-09-09T01:46:40Z", "X-Goog-Encryption-Kms-Key-Name: projects/p/locations/l/keyRings/r/cryptoKeys/k",
		},
		1: {"X-Goog-Hash: crc32c=AAAAAQ==", "Content-Length: 5"},
		3: {"<CompleteMultipartUpload><Part><PartNumber>3</PartNumber><ETag>&#34;abc&#34;</ETag></Part></CompleteMultipartUpload>"},
	} {
		for _, header := range headers {
			if !strings.Contains(w.Got()[i], "\n"+header) {
				t.Errorf("request %d has no %s:\n%s", i, header, w.Got()[i])
			}
		}
	}
}

// A reply that is not from the service, that is cut, or that has an error after its status counts
// as lost.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	const portal = "<html>log in</html>"
	for _, body := range []string{"", portal, "<Error><Code>InternalError</Code></Error>", started[:len(started)-9]} {
		w := wiretest.New(t, xmlReply(200, "", started), xmlReply(200, "", body))
		uri, c := upload(t, w), w.Client()
		_, part := multipart.PutPart(t.Context(), c, spec, uri, 1, 5, 1, strings.NewReader("bytes"))
		_, _, list := multipart.List(t.Context(), c, spec, uri, 0)
		for op, r := range map[string]session.Reply{"start": multipart.Start(t.Context(), c, spec), "part": part, "parts": list, "complete": multipart.Complete(t.Context(), c, spec, uri, nil)} {
			if r.Status != 0 || r.Err == nil || !r.URI.IsZero() || r.Object != nil {
				t.Errorf("%q: %s: %+v, want no reply", body, op, r)
			}
		}
	}
	for _, reply := range []string{
		xmlReply(200, "ETag: \"abc\"\nX-Goog-Hash: crc32c=AAAAAg==\n", ""), // of other bytes
		xmlReply(200, "ETag: "+strings.Repeat("x", 300)+"\n", ""),
	} {
		w := wiretest.New(t, xmlReply(200, "", started), reply)
		if etag, r := multipart.PutPart(t.Context(), w.Client(), spec, upload(t, w), 1, 5, 1, strings.NewReader("bytes")); etag != "" || r.Status != 0 {
			t.Errorf("%s: %q, %+v", reply, etag, r)
		}
	}
	for sum, known := range map[uint32]bool{1: false, 2: true} { // not all bytes were sent, and others
		for _, reported := range []string{"X-Goog-Hash: crc32c=AAAAAQ==\n", ""} {
			w := wiretest.New(t, xmlReply(200, "", started), xmlReply(200, "ETag: \"abc\"\n"+reported, ""))
			etag, r := multipart.StreamPart(t.Context(), w.Client(), spec, upload(t, w), 1, 5, func() (uint32, bool) { return sum, known }, strings.NewReader("bytes"))
			if etag != "" || r.Status != 0 || !r.Differs || r.Err == nil || errors.Is(r.Err, session.ErrChecksum) {
				t.Errorf("%d, %v, %q: %q, %+v", sum, known, reported, etag, r)
			}
		}
	}
	w := wiretest.New(t, xmlReply(200, "", started), xmlReply(200, "ETag: \"abc\"\nX-Goog-Hash: crc32c=AAAAAQ==\n", ""))
	etag, r := multipart.StreamPart(t.Context(), w.Client(), spec, upload(t, w), 1, 5, func() (uint32, bool) { return 1, true }, strings.NewReader("bytes"))
	if etag == "" || r.Status != 200 || strings.Contains(strings.Join(w.Got(), ""), "X-Goog-Hash") {
		t.Errorf("%q, %+v", etag, r)
	}
	for _, part := range []string{
		"<PartNumber>0</PartNumber><ETag>x</ETag><Size>5</Size>", "<PartNumber>1</PartNumber><ETag>x</ETag><Size>-5</Size>",
		"<PartNumber>1</PartNumber><Size>5</Size>", "<PartNumber>10001</PartNumber><ETag>x</ETag><Size>5</Size>",
		"<PartNumber>1</PartNumber><ETag>x</ETag><Size>5</Size></Part><Part><PartNumber>1</PartNumber><ETag>x</ETag><Size>5</Size>",
	} {
		w := wiretest.New(t, xmlReply(200, "", started), xmlReply(200, "", "<ListPartsResult><Part>"+part+"</Part></ListPartsResult>"))
		if _, _, r := multipart.List(t.Context(), w.Client(), spec, upload(t, w), 0); r.Status != 0 || r.Err == nil {
			t.Errorf("%s: %+v", part, r)
		}
	}
}

// A Reply has the reason and the message of an error of the XML API, and whether the service sent
// it.
func TestErrors(t *testing.T) {
	t.Parallel()
	const body = "<?xml version='1.0'?><Error><Code>%s</Code><Message>about %s</Message></Error>"
	for _, test := range []struct {
		status       int
		code, reason string
		gone, again  bool
	}{
		{404, "NoSuchUpload", "NoSuchUpload", true, false},
		{404, "NoSuchBucket", "NoSuchBucket", false, false},
		{400, "BadDigest", "BadDigest", false, false},
		{403, "AccessDenied", "AccessDenied", false, false},
		{403, "SlowDown", "rateLimitExceeded", false, true},
		{503, "InternalError", "InternalError", false, true},
	} {
		w := wiretest.New(t, xmlReply(200, "", started), xmlReply(test.status, "", fmt.Sprintf(body, test.code, uploadID)))
		_, r := multipart.PutPart(t.Context(), w.Client(), spec, upload(t, w), 1, 5, 1, strings.NewReader("bytes"))
		if r.Status != test.status || r.Reason != test.reason || !r.FromService || noUpload(r) != test.gone || r.Retryable() != test.again {
			t.Errorf("%s: %+v", test.code, r)
		}
		if r.Message != "about [redacted]" {
			t.Errorf("%s: message %q", test.code, r.Message)
		}
	}
	w := wiretest.New(t, xmlReply(200, "", started), xmlReply(404, "", "<html>no such page</html>"))
	if r := multipart.Abort(t.Context(), w.Client(), spec, upload(t, w)); r.FromService || noUpload(r) || !r.Retryable() {
		t.Errorf("a proxy's 404: %+v", r)
	}
}

// A tracing transport does not see the body that has the upload ID.
func TestSecret(t *testing.T) {
	t.Parallel()
	w := wiretest.New(t, xmlReply(200, "", started))
	uri := multipart.Start(t.Context(), wiretest.NewClient(t, &http.Client{Transport: session.Traced(func(next http.RoundTripper) http.RoundTripper {
		return wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil || hasID(string(body)) {
				t.Errorf("the tracing transport read %q, %v", body, err)
			}
			return resp, nil
		})
	}, nil)}, w.Endpoint()), spec).URI
	if uri.IsZero() || hasID(fmt.Sprintf("%v %+v %#v", uri, uri, uri)) {
		t.Errorf("the upload is %v", uri)
	}
}

// Unsupported rejects what a header cannot have and what the XML API does not support.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	if why := multipart.Unsupported(spec); why != "" {
		t.Error(why)
	}
	for name, change := range map[string]func(*session.Spec){
		"precondition":      func(s *session.Spec) { s.IfGenerationMatch = new(int64) },
		"metageneration":    func(s *session.Spec) { s.IfMetagenerationNotMatch = new(int64) },
		"MD5":               func(s *session.Spec) { s.MD5 = make([]byte, 16) },
		"hold":              func(s *session.Spec) { s.EventBasedHold = true },
		"retention":         func(s *session.Spec) { s.Retention = &session.Retention{} },
		"contexts":          func(s *session.Spec) { s.Contexts = &session.ObjectContexts{} },
		"ACL":               func(s *session.Spec) { s.PredefinedACL = "private" },
		"upper case key":    func(s *session.Spec) { s.Metadata = map[string]string{"Owner": "x"} },
		"key with a space":  func(s *session.Spec) { s.Metadata = map[string]string{"a b": "x"} },
		"value not ASCII":   func(s *session.Spec) { s.Metadata = map[string]string{"a": "ä"} },
		"value with spaces": func(s *session.Spec) { s.Metadata = map[string]string{"a": " x"} },
		"attribute":         func(s *session.Spec) { s.ContentDisposition = "attachment; filename=ä" },
	} {
		s := spec
		change(&s)
		if multipart.Unsupported(s) == "" {
			t.Errorf("%s: can be made", name)
		}
		if r := multipart.Start(t.Context(), wiretest.NewClient(t, nil, "http://127.0.0.1:1"), s); !errors.Is(r.Err, session.ErrInvalid) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestCompressed checks that an object of compressed bytes has their encoding.
func TestCompressed(t *testing.T) {
	t.Parallel()
	w := wiretest.New(t, xmlReply(200, "", started))
	compressed := spec
	compressed.Gzip = true
	if r := multipart.Start(t.Context(), w.Client(), compressed); r.URI.IsZero() || !strings.Contains(strings.Join(w.Got(), ""), "Content-Encoding: gzip\n") {
		t.Errorf("%+v\n%s", r, w.Got())
	}
}

// FuzzMultipart checks that each exchange reads a complete result from any body, or counts the
// reply as lost.
func FuzzMultipart(f *testing.F) {
	f.Add(started)
	f.Add("<ListPartsResult><IsTruncated>true</IsTruncated><Part><PartNumber>3</PartNumber><ETag>\"abc\"</ETag><Size>5</Size></Part></ListPartsResult>")
	f.Add("<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")
	f.Add("<Error><Code>NoSuchUpload</Code><Message>x</Message></Error>")
	f.Fuzz(func(t *testing.T, body string) {
		for _, status := range []int{200, 404} {
			c := wiretest.NewClient(t, &http.Client{Transport: wiretest.RoundTrip(func(*http.Request) (*http.Response, error) {
				return wiretest.Response(status, http.Header{}, body), nil
			})}, "")
			r := multipart.Start(t.Context(), c, spec)
			if (r.Status == 200) == (r.URI.IsZero()) {
				t.Errorf("start: %+v", r)
			}
			uri := wiretest.URI(t, session.DefaultEndpoint, "/upload?upload_id=x")
			parts, more, r := multipart.List(t.Context(), c, spec, uri, 0)
			if r.Status == 0 && r.Err == nil || r.Status != 200 && len(parts) > 0 || more && len(parts) == 0 {
				t.Errorf("parts: %v, %+v", parts, r)
			}
			last := 0
			for _, p := range parts {
				if p.Number <= last || p.Size < 0 || p.ETag == "" {
					t.Errorf("part %+v after %d", p, last)
				}
				last = p.Number
			}
			if r := multipart.Complete(t.Context(), c, spec, uri, parts); (r.Status == 200) == (r.Object == nil) {
				t.Errorf("complete: %+v", r)
			}
		}
	})
}

// The Details of an error of the XML API are part of its message: only they name the principal,
// the permission or the object.
func TestErrorDetails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status      int
		body        string
		message     string
		objectLimit bool
	}{
		{403, "<Code>AccessDenied</Code><Message>Access denied.</Message><Details>a@b does not have storage.objects.create access</Details>", "a@b does not have storage.objects.create access (Access denied)", false},
		{404, "<Code>NoSuchBucket</Code><Message>The specified bucket does not exist.</Message>", "The specified bucket does not exist.", false},
		{429, "<Code>SlowDown</Code><Message>Please reduce your request rate.</Message><Details>Changing object b/o too quickly, please slow down</Details>", "Changing object b/o too quickly, please slow down (Please reduce your request rate)", true},
		{429, "<Code>SlowDown</Code><Message>Please reduce your request rate.</Message>", "Please reduce your request rate.", false},
	} {
		w := wiretest.New(t, xmlReply(200, "", started), xmlReply(test.status, "", "<?xml version='1.0'?><Error>"+test.body+"</Error>"))
		_, r := multipart.PutPart(t.Context(), w.Client(), spec, upload(t, w), 1, 5, 1, strings.NewReader("bytes"))
		if r.Message != test.message || breaker.ObjectRateLimit(r.Status, r.Reason, r.Message) != test.objectLimit {
			t.Errorf("message %q, want %q; limit of an object %t", r.Message, test.message, !test.objectLimit)
		}
	}
}
