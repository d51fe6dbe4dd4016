package upload_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"gcsup/fakegcs"
)

// matrixRequest is a kind of request. part is the number of the part that it is about, or 0.
type matrixRequest struct {
	kind string
	part int
}

func (r matrixRequest) xml() bool {
	return r.kind == "initiate" || r.kind == "part" || r.kind == "list" || r.kind == "complete" || r.kind == "abort"
}

func (r matrixRequest) String() string {
	if r.part > 0 {
		return fmt.Sprintf("%s %d", r.kind, r.part)
	}
	return r.kind
}

// matrixRequestOf returns the kind of an HTTP request.
func matrixRequestOf(req *http.Request) matrixRequest {
	q, p := req.URL.Query(), req.URL.Path
	part := matrixPartOf(p)
	switch {
	case q.Has("uploads"):
		return matrixRequest{"initiate", 0}
	case q.Has("uploadId"):
		number, _ := strconv.Atoi(q.Get("partNumber"))
		return matrixRequest{map[string]string{"PUT": "part", "GET": "list", "POST": "complete", "DELETE": "abort"}[req.Method], number}
	case strings.HasPrefix(p, "/upload/"):
		part = matrixPartOf(q.Get("name"))
		covered, total, _ := strings.Cut(strings.TrimPrefix(req.Header.Get("Content-Range"), "bytes "), "/")
		_, last, _ := strings.Cut(covered, "-")
		to, _ := strconv.Atoi(last)
		switch size, _ := strconv.Atoi(total); {
		case !q.Has("upload_id"):
			return matrixRequest{"start", part}
		case req.Method == "DELETE":
			return matrixRequest{"cancel", part}
		case total == "*":
			return matrixRequest{"query", part}
		case covered == "*" || to+1 == size:
			return matrixRequest{"finalize", part}
		}
		return matrixRequest{"put", part}
	case strings.HasSuffix(p, "/compose"):
		return matrixRequest{"compose", 0}
	case strings.Contains(p, "/o/"):
		return matrixRequest{map[string]string{"GET": "stat", "DELETE": "delete"}[req.Method], part}
	case strings.HasSuffix(p, "/iam/testPermissions"):
		return matrixRequest{"permissions", 0}
	case strings.HasSuffix(p, "/notificationConfigs"):
		return matrixRequest{"notifications", 0}
	}
	return matrixRequest{"bucket", 0}
}

// matrixPartOf returns the number of the part from the name of its temporary object, or 0.
func matrixPartOf(name string) int {
	n, err := strconv.Atoi(name[strings.LastIndexByte(name, '/')+1:])
	if err != nil || n > 1 {
		return 0
	}
	return n + 1
}

// matrixCondition is a request after which replies are wrong. It gets a wrong reply itself if status is
// not "".
type matrixCondition struct {
	kind, status string
	when         matrixTime
}

// matrixLink is the network between an upload and the service. It replaces replies.
type matrixLink struct {
	c      *matrixCase
	next   http.RoundTripper
	srv    *fakegcs.Server
	stored chan struct{} // closed when the service has part 1

	mu        sync.Mutex
	faulty    bool   // replies are replaced
	met       bool   // the condition is met
	interrupt func() // ends the call when part 2 is sent; nil if it is not interrupted
	stop      func() // ends a call that makes too many requests
	requests  int    // of the call
	fired     int    // replies that were replaced
	log       []string
	sessions  map[int][]string // session URIs by part
	had       matrixHolding    // what the service had when replies were replaced
}

// matrixMaxRequests bounds the requests of one call. An upload without faults makes about ten.
const matrixMaxRequests = 400

var errTooMany = errors.New("too many requests")

func (l *matrixLink) RoundTrip(req *http.Request) (*http.Response, error) {
	r := matrixRequestOf(req)
	if err := l.await(req.Context(), r); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	status, who, when, writes := l.replaced(r)
	var resp *http.Response
	var err error
	if status == "" || when == after {
		resp, err = l.next.RoundTrip(req)
	} else if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	line := "no reply"
	if resp != nil {
		l.note(r, resp)
		line = resp.Status
	}
	if status != "" {
		if resp != nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		had := l.holding()
		if writes {
			l.send("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=obj", nil, strings.NewReader(matrixOther))
		}
		if resp, err = matrixReply(req, r, status, who), nil; resp == nil {
			err = errReset
		}
		line = fmt.Sprintf("%s of the %s, %s the effect", status, who, when)
		l.mu.Lock()
		l.had = l.had.most(had)
		l.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = append(l.log, fmt.Sprintf("%-11s %s %s %s", r, req.Method, req.Header.Get("Content-Range"), line))
	return resp, err
}

// await delays part 2 until the service has part 1. It returns an error if the request is not made.
func (l *matrixLink) await(ctx context.Context, r matrixRequest) error {
	if r.part == 2 && (r.kind == "part" || r.kind == "start") {
		select {
		case <-l.stored:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(30 * time.Second):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.interrupt != nil && r.part == 2 && (r.kind == "part" || r.kind == "finalize") {
		l.interrupt()
		return context.Canceled
	}
	if l.requests++; l.requests > matrixMaxRequests {
		l.stop()
		return errTooMany
	}
	return nil
}

// matrixOther is the object of another client.
const matrixOther = "of another client"

// replaced returns the status with which the reply to r will be replaced, or "". writes reports that
// another client then writes the object.
func (l *matrixLink) replaced(r matrixRequest) (status, who string, when matrixTime, writes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.c
	if !l.faulty {
		return "", "", before, false
	}
	if c.since != nil && !l.met {
		if r.kind == c.since.kind && (r.part == 0 || r.part == c.of.part) {
			l.met = true
			return c.since.status, "service", c.since.when, false
		}
		return "", "", before, false
	}
	if r != c.of || c.times == once && l.fired == 1 || c.times == twice && l.fired == 2 {
		return "", "", before, false
	}
	l.fired++
	return c.status, c.who, c.when, c.written && l.fired == 1
}

// note records a reply of the service.
func (l *matrixLink) note(r matrixRequest, resp *http.Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case resp.StatusCode != http.StatusOK || resp.Header.Get("X-Http-Status-Code-Override") != "":
	case r.kind == "start":
		if l.sessions == nil {
			l.sessions = map[int][]string{}
		}
		l.sessions[r.part] = append(l.sessions[r.part], resp.Header.Get("Location"))
	case r == matrixRequest{"part", 1}, r == matrixRequest{"finalize", 1}:
		select {
		case <-l.stored:
		default:
			close(l.stored)
		}
	}
}

// matrixCodes are the error codes of the XML API. Other statuses have InvalidArgument.
var matrixCodes = map[string]string{
	"400part": "InvalidPart", "401": "AuthenticationRequired", "403": "AccessDenied", "403rate": "SlowDown",
	"404": "NoSuchUpload", "404bucket": "NoSuchBucket", "404key": "NoSuchKey", "409": "OperationAborted", "411": "MissingContentLength",
	"412": "PreconditionFailed", "413": "EntityTooLarge", "416": "InvalidRange", "429": "SlowDown", "500": "InternalError",
	"501": "NotImplemented", "503": "ServiceUnavailable",
}

// matrixReasons are the reasons of the JSON API. Other statuses have "invalid".
var matrixReasons = map[string]string{
	"401": "authError", "403": "forbidden", "403rate": "rateLimitExceeded", "404": "notFound", "409": "conflict", "411": "lengthRequired",
	"412": "conditionNotMet", "413": "uploadTooLarge", "416": "requestedRangeNotSatisfiable", "429": "rateLimitExceeded",
	"500": "internalError", "501": "notImplemented", "503": "backendError",
}

// matrixReply returns a wrong reply, or nil if there is none.
func matrixReply(req *http.Request, r matrixRequest, status, who string) *http.Response {
	if status == "lost" {
		return nil
	}
	code, _ := strconv.Atoi(status[:min(3, len(status))])
	if status == "wrong" {
		code = http.StatusOK
	}
	resp := &http.Response{
		Status: fmt.Sprint(code, " ", http.StatusText(code)), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Request: req,
	}
	body, contentType := "<html>log in</html>", "text/html"
	switch {
	case who == "stranger" && code == http.StatusFound:
		resp.Header.Set("Location", "http://portal.test/")
	case who == "stranger":
	case status == "wrong":
		body, contentType = wrongBody(r, resp.Header)
	case code == http.StatusOK && r.xml():
		body, contentType = "<Other></Other>", "application/xml; charset=UTF-8"
	case code == http.StatusOK:
		body, contentType = "{}", "application/json; charset=UTF-8"
	case code == 499:
		body = ""
	case r.xml():
		reason := matrixCodes[status]
		if reason == "" {
			reason = "InvalidArgument"
		}
		body, contentType = "<?xml version='1.0' encoding='UTF-8'?><Error><Code>"+reason+"</Code><Message>fault</Message></Error>", "application/xml; charset=UTF-8"
	default:
		reason := matrixReasons[status]
		if reason == "" {
			reason = "invalid"
		}
		body, contentType = fmt.Sprintf(`{"error":{"code":%d,"message":"fault","errors":[{"message":"fault","domain":"global","reason":%q}]}}`, code, reason), "application/json; charset=UTF-8"
	}
	if who != "stranger" {
		resp.Header.Set("X-Guploader-Uploadid", "x")
	}
	resp.Header.Set("Content-Type", contentType)
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return resp
}

// wrongBody returns the body of a 200 that describes something else.
func wrongBody(r matrixRequest, h http.Header) (body, contentType string) {
	h.Set("X-Goog-Hash", "crc32c=AAAAAA==")
	h.Set("X-Goog-Generation", "7")
	h.Set("ETag", `"0123456789abcdef0123456789abcdef"`)
	switch r.kind {
	case "part":
		h.Del("X-Goog-Hash")
		return "", "text/html"
	case "list":
		return "<ListPartsResult></ListPartsResult>", "application/xml"
	case "complete":
		return "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>", "application/xml"
	}
	return `{"kind":"storage#object","bucket":"bkt","name":"other","generation":"7","metageneration":"1","size":"3","crc32c":"AAAAAA==","componentCount":1}`, "application/json"
}

// matrixHolding is what the service stores of an upload, except the object.
type matrixHolding struct {
	uploads int      // multipart uploads with parts
	empty   int      // multipart uploads without parts
	temps   []string // temporary objects
	bytes   [3]int64 // stored bytes by the number of the part
}

// most returns the larger number of bytes of each part.
func (h matrixHolding) most(o matrixHolding) matrixHolding {
	for i := range h.bytes {
		h.bytes[i] = max(h.bytes[i], o.bytes[i])
	}
	return h
}

func (h matrixHolding) String() string {
	return fmt.Sprintf("%d multipart uploads with and %d without parts, %d temporary objects, bytes of parts %v", h.uploads, h.empty, len(h.temps), h.bytes[1:])
}

// holding asks the service what it stores. It does not use the network.
func (l *matrixLink) holding() (h matrixHolding) {
	var uploads struct {
		Upload []struct {
			UploadID string `xml:"UploadId"`
		}
	}
	l.askXML("/bkt?uploads", &uploads)
	for _, u := range uploads.Upload {
		var list struct {
			Part []struct {
				PartNumber int
				Size       int64
			}
		}
		l.askXML("/bkt/obj?uploadId="+url.QueryEscape(u.UploadID), &list)
		if len(list.Part) == 0 {
			h.empty++
			continue
		}
		h.uploads++
		for _, p := range list.Part {
			if p.PartNumber < len(h.bytes) {
				h.bytes[p.PartNumber] = max(h.bytes[p.PartNumber], p.Size)
			}
		}
	}
	var temps struct {
		Items []fakegcs.Object `json:"items"`
	}
	if err := json.Unmarshal(l.ask("GET", "/storage/v1/b/bkt/o?prefix=gcsup-parts/", nil).Body.Bytes(), &temps); err != nil {
		panic(err)
	}
	for _, o := range temps.Items {
		h.temps = append(h.temps, o.Name)
		h.bytes[matrixPartOf(o.Name)] = o.Size
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for part, uris := range l.sessions {
		for _, uri := range uris {
			r := l.ask("PUT", uri, http.Header{"Content-Range": {"bytes */*"}})
			if last, ok := strings.CutPrefix(r.Header().Get("Range"), "bytes=0-"); ok && r.Code == http.StatusPermanentRedirect {
				n, _ := strconv.ParseInt(last, 10, 64)
				h.bytes[part] = max(h.bytes[part], n+1)
			}
		}
	}
	return h
}

func (l *matrixLink) ask(method, target string, header http.Header) *httptest.ResponseRecorder {
	return l.send(method, target, header, nil)
}

func (l *matrixLink) send(method, target string, header http.Header, body io.Reader) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, target, body)
	for name, values := range header {
		req.Header[name] = values
	}
	w := httptest.NewRecorder()
	l.srv.ServeHTTP(w, req)
	return w
}

func (l *matrixLink) askXML(target string, v any) {
	if err := xml.NewDecoder(l.ask("GET", target, nil).Body).Decode(v); err != nil {
		panic(err)
	}
}
