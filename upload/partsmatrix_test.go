package upload_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/multipart"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// matrixScene is a call in which the replies to one kind of request are wrong. Its file has two
// parts, of which the service stores the first one before the second one is sent.
type matrixScene struct {
	name  string // the way, a slash, and the request, with what precedes it
	act   matrixAct
	saved bool             // an interrupted call precedes: the service has part 1, and by compose half of part 2
	of    matrixRequest    // the request
	since *matrixCondition // replies are wrong after this request; nil means from the beginning
	reads bool             // the request changes nothing at the service
	large bool             // the parts do not fit in memory, so that their requests have no checksum
}

// matrixAct is the call.
type matrixAct int

const (
	actUpload  matrixAct = iota // ReaderAt
	actRestart                  // ReaderAt with Options.Restart
	actCancel                   // Cancel
	actRemove                   // Prune of an upload whose source is missing
	actPrune                    // Prune of an upload that can be resumed
)

// matrixScenes are all scenes. The way "either" is multipart or else compose, and "auto" is that of
// Parts.Auto.
var matrixScenes = []matrixScene{
	{name: "multipart/stat", of: matrixRequest{"stat", 0}, reads: true},
	{name: "multipart/initiate", of: matrixRequest{"initiate", 0}},
	{name: "either/initiate", of: matrixRequest{"initiate", 0}},
	{name: "auto/initiate", of: matrixRequest{"initiate", 0}},
	{name: "auto/left-session", of: matrixRequest{"cancel", 0}},
	{name: "auto/stat", of: matrixRequest{"stat", 0}, reads: true},
	{name: "multipart/part", of: matrixRequest{"part", 2}},
	{name: "multipart/streamed-part", of: matrixRequest{"part", 2}, large: true},
	{name: "multipart/list", of: matrixRequest{"list", 0}, reads: true},
	{name: "multipart/resume-list", of: matrixRequest{"list", 0}, reads: true, saved: true},
	{name: "multipart/complete", of: matrixRequest{"complete", 0}},
	{name: "multipart/lost-stat", of: matrixRequest{"stat", 0}, reads: true, since: &matrixCondition{"complete", "lost", true}},
	{name: "multipart/described-stat", of: matrixRequest{"stat", 0}, reads: true, since: &matrixCondition{"complete", "", true}},
	{name: "multipart/cancel-abort", of: matrixRequest{"abort", 0}, saved: true, act: actCancel},
	{name: "multipart/restart-abort", of: matrixRequest{"abort", 0}, saved: true, act: actRestart},
	{name: "multipart/remove-abort", of: matrixRequest{"abort", 0}, saved: true, act: actRemove},
	{name: "multipart/prune-list", of: matrixRequest{"list", 0}, reads: true, saved: true, act: actPrune},

	{name: "compose/stat", of: matrixRequest{"stat", 0}, reads: true},
	{name: "compose/bucket", of: matrixRequest{"bucket", 0}, reads: true},
	{name: "compose/permissions", of: matrixRequest{"permissions", 0}, reads: true},
	{name: "compose/notifications", of: matrixRequest{"notifications", 0}, reads: true},
	{name: "compose/start", of: matrixRequest{"start", 2}},
	{name: "compose/put", of: matrixRequest{"put", 2}},
	{name: "compose/finalize", of: matrixRequest{"finalize", 2}},
	{name: "compose/put-query", of: matrixRequest{"query", 2}, reads: true, since: &matrixCondition{"put", "lost", true}},
	{name: "compose/resume-query", of: matrixRequest{"query", 2}, reads: true, saved: true},
	{name: "compose/compose", of: matrixRequest{"compose", 0}},
	{name: "compose/lost-stat", of: matrixRequest{"stat", 0}, reads: true, since: &matrixCondition{"compose", "lost", true}},
	{name: "compose/missing-stat", of: matrixRequest{"stat", 2}, reads: true, since: &matrixCondition{"compose", "404", false}},
	{name: "compose/delete", of: matrixRequest{"delete", 2}},
	{name: "compose/cancel-session", of: matrixRequest{"cancel", 2}, saved: true, act: actCancel},
	{name: "compose/cancel-delete", of: matrixRequest{"delete", 1}, saved: true, act: actCancel},
	{name: "compose/restart-session", of: matrixRequest{"cancel", 2}, saved: true, act: actRestart},
	{name: "compose/restart-delete", of: matrixRequest{"delete", 1}, saved: true, act: actRestart},
	{name: "compose/remove-delete", of: matrixRequest{"delete", 1}, saved: true, act: actRemove},
	{name: "compose/prune-query", of: matrixRequest{"query", 2}, reads: true, saved: true, act: actPrune},
}

func (s *matrixScene) way() string { return path.Dir(s.name) }

// is reports whether the name of the scene matches one of the patterns.
func (s *matrixScene) is(patterns string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(pattern string) bool {
		ok, _ := path.Match(pattern, s.name)
		return ok
	})
}

// matrixReplies are the wrong replies. The session package has tables with all of them. Here are one of each effect.
var matrixReplies = []struct{ status, who string }{
	{"401", "service"}, {"403", "service"}, {"404", "service"}, {"409", "service"}, {"503", "service"},
	{"200", "service"},   // {} or another document
	{"wrong", "service"}, // a 200 that describes another object, part or list
	{"404", "stranger"},  // a page
	{"lost", "network"},
}

// matrixCase is a scene with one kind of wrong reply.
type matrixCase struct {
	*matrixScene
	status, who string
	after       bool        // the service executed the request; otherwise it did not see it
	times       matrixTimes // how many requests in a row get the reply
}

type matrixTimes string

const (
	once   matrixTimes = "once"
	twice  matrixTimes = "twice"
	always matrixTimes = "always" // until the call returns
)

func (c *matrixCase) String() string {
	when := map[bool]string{false: "before", true: "after"}[c.after]
	return fmt.Sprintf("%s/%s/%s/%s/%s", c.name, c.status, c.who, when, c.times)
}

// retried reports whether the reply only means that the same request may succeed later.
func (c *matrixCase) retried() bool { return c.who != "service" || c.status == "503" }

// matrixCases returns all cases, in a fixed order.
func matrixCases() (cases []*matrixCase) {
	wrong := []string{"part", "list", "complete", "finalize", "query", "compose", "stat"} // can describe something else
	for i := range matrixScenes {
		s := &matrixScenes[i]
		for _, r := range matrixReplies {
			for _, times := range []matrixTimes{once, twice, always} {
				for _, after := range []bool{false, true} {
					switch {
					case after && (s.reads || times == always), r.status == "404" && r.who == "service" && s.of.kind == "initiate":
					case r.status == "wrong" && (times != once || !slices.Contains(wrong, s.of.kind)):
					default:
						cases = append(cases, &matrixCase{s, r.status, r.who, after, times})
					}
				}
			}
		}
	}
	return cases
}

// matrixOutcome is a set of allowed outcomes of a case.
type matrixOutcome int

const (
	// done: the call succeeds. The object is right, unless the call removes the upload. Nothing else
	// is left.
	done matrixOutcome = 1 << iota

	// kept: the call fails, or leaves the upload as it is (actPrune). The saved upload stays, and all
	// that the service stored. The next call without faults does the rest, and sends nothing that was
	// stored.
	kept

	// unstored: the call fails before anything is stored.
	unstored

	// toRemove: the object is right, but something is left at the service. A Warning reports it, the
	// upload stays saved, and the next Prune removes it.
	toRemove

	// otherWay: like done, but the object was made in another way.
	otherWay

	// part2Again and allAgain allow that stored bytes of part 2, or of all parts, are sent again: the
	// service refused them, or confirmed that it does not have them.
	part2Again
	allAgain

	// orphan allows that something is left that is not saved, because the service confirmed that it
	// does not exist.
	orphan
)

func (o matrixOutcome) String() string {
	var names []string
	for i, name := range []string{"done", "kept", "nothing stored", "to be removed", "another way", "part 2 again", "all again", "orphan"} {
		if o&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// want returns the outcomes that are allowed. A reply that is retried has no effect, unless it is given until the retries are used up.
// Any other one ends in an outcome that loses nothing: only bytes that the service refused, or confirmed that it does not have, are
// sent again.
func (c *matrixCase) want() (want matrixOutcome) {
	storing := c.is("multipart/*part multipart/*list multipart/complete multipart/lost-stat compose/start compose/put compose/finalize " +
		"compose/*-query compose/compose compose/lost-stat compose/missing-stat")
	confirmed := c.who == "service" && (c.status == "404" || c.status == "200" && !storing) && c.times != once
	if confirmed {
		want |= allAgain | part2Again | orphan
	}
	if c.is("multipart/*part compose/put compose/finalize compose/*-query") && !c.retried() {
		want |= part2Again // at most the refused part is lost
	}
	if c.is("*/restart-*") {
		want |= allAgain // for the call after this one, too
	}
	switch {
	case c.is("*/prune-*"):
		return want | kept | done
	case c.is("auto/left-session multipart/described-stat"):
		return want | done
	case c.retried() && c.times != always && c.is("compose/missing-stat"):
		return want | done | kept
	case c.retried() && c.times != always && c.is("*/initiate */stat compose/bucket compose/permissions compose/notifications"):
		return want | done | otherWay // a stranger may refuse what is optional
	case c.retried() && c.times != always:
		return want | done
	case c.is("compose/delete"):
		return want | done | toRemove | orphan
	case c.is("*/cancel-* */remove-*"):
		return want | done | kept | orphan
	case c.is("*/restart-*"):
		return want | done | kept | toRemove | orphan
	case storing:
		return want | done | kept
	}
	if want |= done | otherWay | unstored; c.way() == "auto" {
		want |= kept // the session that has shown a slow connection
	}
	return want
}

// TestPartsMatrix uploads a file in parts, and gives each of its requests each wrong reply: once,
// twice in a row and always, with and without an effect at the service. The object is right or absent, nothing stored is lost, and
// nothing is left that is not saved. The model checks of package session give all replies to the tables, and the tests of package
// parts have the requests that follow.
//
// CI runs all cases, and go test a fixed selection. A pattern with a slash selects from all cases:
//
//	go test ./upload -run 'TestPartsMatrix/multipart/part/403$/service/before/once'
func TestPartsMatrix(t *testing.T) {
	t.Parallel()
	cases, every := matrixCases(), testsize.Raced(20, testsize.Full(1, 5))
	page, err := os.ReadFile("../docs/reliability.md")
	text := fmt.Sprintf("%d replies to %d kinds of requests, %d,%03d combinations", len(matrixReplies), len(matrixScenes), len(cases)/1000, len(cases)%1000)
	if err != nil || !strings.Contains(string(page), text) {
		t.Errorf("docs/reliability.md does not contain %q: %v", text, err)
	}
	if testing.Short() {
		every = 101
	}
	if strings.Contains(flag.Lookup("test.run").Value.String(), "TestPartsMatrix/") {
		every = 1
	}
	var mu sync.Mutex
	made := map[string]bool{} // whether a case of a scene makes its request
	t.Cleanup(func() {
		for name, made := range made {
			if !made {
				t.Errorf("no case of %s makes its request", name)
			}
		}
	})
	scenes := map[string][]*matrixCase{}
	for i, c := range cases {
		if i%every == 0 {
			scenes[c.name] = append(scenes[c.name], c)
		}
	}
	for name, cases := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range cases {
				t.Run(strings.TrimPrefix(c.String(), name+"/"), func(t *testing.T) {
					fired := runMatrixCase(t, c)
					mu.Lock()
					defer mu.Unlock()
					made[name] = made[name] || fired
				})
			}
		})
	}
}

// matrixRequest is a kind of request. part is the number of the part that it is about, or 0.
type matrixRequest struct {
	kind string
	part int
}

func (r matrixRequest) xml() bool {
	return slices.Contains([]string{"initiate", "part", "list", "complete", "abort"}, r.kind)
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
	after        bool
}

// matrixRun is a case that runs. It uploads like one process after the other, and replaces replies.
type matrixRun struct {
	*world
	c       *matrixCase
	next    http.RoundTripper
	content []byte
	parts   [3]int64      // the size of each part, by number
	stored  chan struct{} // closed when the service has part 1

	mu        sync.Mutex
	faulty    bool             // replies are replaced
	met       bool             // the condition is met
	interrupt func()           // ends the call when part 2 is sent; nil if it is not interrupted
	stop      func()           // ends a call that makes too many requests
	requests  int              // of the call
	fired     int              // replies that were replaced
	sessions  map[int][]string // session URIs by part
	had       [3]int64         // bytes of parts that the service had when replies were replaced
	log       []string         // requests and problems
}

func (m *matrixRun) logf(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

// problem fails the test. The log has where.
func (m *matrixRun) problem(format string, args ...any) {
	m.logf("PROBLEM: "+format, args...)
	m.t.Fail()
}

const (
	matrixTimeout = 5 * time.Minute // of one call. The retries of a small upload end after about half a minute
	matrixMost    = 400             // requests of one call. An upload without faults makes about ten
)

// RoundTrip makes a request, and replaces its reply.
func (m *matrixRun) RoundTrip(req *http.Request) (*http.Response, error) {
	r := matrixRequestOf(req)
	if err := m.await(req.Context(), r); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	status, who, after := m.replaced(r)
	var resp *http.Response
	var err error
	if status == "" || after {
		if resp, err = m.next.RoundTrip(req); err == nil {
			m.note(r, resp)
		}
	} else if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
	m.logf("%v %s %s: replaced by %q of the %s, after the effect %t", r, req.Method, req.Header.Get("Content-Range"), status, who, after)
	if status == "" {
		return resp, err
	}
	if resp != nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	had, _ := m.holding()
	m.mu.Lock()
	for i, n := range had {
		m.had[i] = max(m.had[i], n)
	}
	m.mu.Unlock()
	if status == "lost" {
		return nil, errReset
	}
	return matrixReply(req, r, status, who), nil
}

// await delays part 2 until the service has part 1. It returns an error if the request is not made.
func (m *matrixRun) await(ctx context.Context, r matrixRequest) error {
	if r.part == 2 && (r.kind == "part" || r.kind == "start") {
		select {
		case <-m.stored:
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(30 * time.Second):
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.interrupt != nil && r.part == 2 && (r.kind == "part" || r.kind == "finalize") {
		m.interrupt()
		return context.Canceled
	}
	if m.requests++; m.requests > matrixMost {
		m.stop()
		return errReset
	}
	return nil
}

// replaced returns the status with which the reply to r will be replaced, or "".
func (m *matrixRun) replaced(r matrixRequest) (status, who string, after bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.c
	switch {
	case !m.faulty:
		return "", "", false
	case c.since != nil && !m.met:
		if m.met = r.kind == c.since.kind && (r.part == 0 || r.part == c.of.part); m.met {
			return c.since.status, "service", c.since.after
		}
		return "", "", false
	case r != c.of, c.times == once && m.fired == 1, c.times == twice && m.fired == 2:
		return "", "", false
	}
	m.fired++
	return c.status, c.who, c.after
}

// note records a reply of the service.
func (m *matrixRun) note(r matrixRequest, resp *http.Response) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case resp.StatusCode != http.StatusOK || resp.Header.Get("X-Http-Status-Code-Override") != "":
	case r.kind == "start":
		m.sessions[r.part] = append(m.sessions[r.part], resp.Header.Get("Location"))
	case r == matrixRequest{"part", 1}, r == matrixRequest{"finalize", 1}:
		select {
		case <-m.stored:
		default:
			close(m.stored)
		}
	}
}

// matrixReply returns a wrong reply.
func matrixReply(req *http.Request, r matrixRequest, status, who string) *http.Response {
	code, err := strconv.Atoi(status)
	if err != nil {
		code = http.StatusOK // "wrong"
	}
	resp := &http.Response{StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: req}
	body, contentType := `{}`, "application/json; charset=UTF-8"
	switch {
	case who == "stranger":
		body, contentType = "<html>log in</html>", "text/html"
	case status == "wrong":
		resp.Header = http.Header{"X-Goog-Hash": {"crc32c=AAAAAA=="}, "X-Goog-Generation": {"7"}, "Etag": {`"0123456789abcdef0123456789abcdef"`}}
		switch r.kind {
		case "part":
			resp.Header.Del("X-Goog-Hash")
		case "list":
			body, contentType = "<ListPartsResult></ListPartsResult>", "application/xml"
		case "complete":
			body, contentType = "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>", "application/xml"
		default:
			body = `{"kind":"storage#object","bucket":"bkt","name":"other","generation":"7","metageneration":"1","size":"3","crc32c":"AAAAAA==","componentCount":1}`
		}
	case r.xml():
		body, contentType = "<Other></Other>", "application/xml; charset=UTF-8"
		if code != http.StatusOK {
			name := map[int]string{401: "AuthenticationRequired", 403: "AccessDenied", 404: "NoSuchUpload", 409: "OperationAborted", 503: "ServiceUnavailable"}[code]
			body = "<?xml version='1.0' encoding='UTF-8'?><Error><Code>" + name + "</Code><Message>fault</Message></Error>"
		}
	case code != http.StatusOK:
		reason := map[int]string{401: "authError", 403: "forbidden", 404: "notFound", 409: "conflict", 503: "backendError"}[code]
		body = fmt.Sprintf(`{"error":{"code":%d,"message":"fault","errors":[{"message":"fault","domain":"global","reason":%q}]}}`, code, reason)
	}
	if who != "stranger" {
		resp.Header.Set("X-Guploader-Uploadid", "x")
	}
	resp.Header.Set("Content-Type", contentType)
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	return resp
}

// holding asks the service how many bytes of each part it stores, and what else than the object. It does not use the network.
func (m *matrixRun) holding() (bytes [3]int64, left []string) {
	has := func(part string, size int64) {
		n, _ := strconv.Atoi(part)
		bytes[n] = max(bytes[n], size)
	}
	for _, id := range matrixUpload.FindAllStringSubmatch(m.send("GET", "/bkt?uploads", "").Body.String(), -1) {
		parts := matrixPart.FindAllStringSubmatch(m.send("GET", "/bkt/obj?uploadId="+url.QueryEscape(id[1]), "").Body.String(), -1)
		for _, p := range parts {
			size, _ := strconv.ParseInt(p[2], 10, 64)
			has(p[1], size)
		}
		if len(parts) > 0 || m.c.of.kind != "initiate" { // only a reply that was lost has the ID of an empty one
			left = append(left, "a multipart upload")
		}
	}
	temps, _ := m.srv.ListObjects("bkt", "gcsup-parts/")
	for _, o := range temps {
		left = append(left, o.Name)
		has(fmt.Sprint(matrixPartOf(o.Name)), o.Size)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for part, uris := range m.sessions {
		for _, uri := range uris {
			r, last := m.send("PUT", uri, "bytes */*"), int64(-1)
			if n, _ := fmt.Sscanf(r.Header().Get("Range"), "bytes=0-%d", &last); n == 1 && r.Code == http.StatusPermanentRedirect {
				has(fmt.Sprint(part), last+1)
			}
		}
	}
	return bytes, left
}

var (
	matrixUpload = regexp.MustCompile(`<UploadId>([^<]+)`)
	matrixPart   = regexp.MustCompile(`(?s)<PartNumber>(\d)</PartNumber>.*?<Size>(\d+)`)
)

// send makes a request of another client.
func (m *matrixRun) send(method, target, contentRange string) *httptest.ResponseRecorder {
	req, w := httptest.NewRequest(method, target, http.NoBody), httptest.NewRecorder()
	if contentRange != "" {
		req.Header.Set("Content-Range", contentRange)
	}
	m.srv.ServeHTTP(w, req)
	return w
}

// runMatrixCase runs a case, and reports whether it made the request.
func runMatrixCase(t *testing.T, c *matrixCase) (fired bool) {
	// With an MD5, which is the ETag of a part, a part is recognized after a lost reply. In the other
	// scenes, the saved upload has the ETag. The MD5 would take half of the time.
	opts := &fakegcs.Options{NoMD5: c.of.kind != "part"}
	if c.way() == "auto" {
		opts.Latency = 20 * time.Millisecond // a near service gets one connection
	}
	inBubbleWithMD5(t, opts, func(w *world) {
		size, first := int64(multipart.MinPart+1), int64(multipart.MinPart)
		if c.way() == "compose" {
			size, first = 4*q, 2*q
		}
		m := &matrixRun{
			world: w, c: c, next: w.http.Transport, content: data(size), parts: [3]int64{0, first, size - first},
			stored: make(chan struct{}), sessions: map[int][]string{},
		}
		w.http = &http.Client{Transport: m}
		got := m.run()
		if fired = m.fired > 0; w.t.Failed() {
			w.t.Errorf("%s\noutcome: %v\nwant:    %v\n%s", c, got, c.want(), strings.Join(m.log, "\n"))
		}
	})
	return fired
}

// options are those of each process.
func (m *matrixRun) options(o *upload.Options) {
	o.ChunkSize = q
	switch m.c.way() {
	case "compose":
		o.Parallel = composed(2, 2*q)
	case "multipart":
		byMultipart(o)
	case "either":
		o.Parallel, o.ChunkSize = &upload.Parts{Connections: 2, MinPart: multipart.MinPart}, 4*mib
	case "auto":
		o.Parallel, o.ChunkSize = upload.AutoPartsFrom(0, mib, multipart.MinPart), 4*mib
	}
	if m.c.large {
		o.Memory = q
	}
}

// warned reports whether the last call warned.
func (m *matrixRun) warned() bool { return m.saw(upload.Warning) > 0 }

// call makes a call with a bound for its time. It returns the bytes of each part that the service received.
func (m *matrixRun) call(name string, f func(context.Context) error) (received [3]int64, err error) {
	ctx, stop := context.WithTimeout(m.t.Context(), matrixTimeout)
	defer stop()
	m.mu.Lock()
	m.requests, m.stop, m.events = 0, stop, nil
	m.mu.Unlock()
	from := len(m.srv.Requests())
	err = f(ctx)
	if m.logf("-- %s: %v", name, err); ctx.Err() != nil || errors.Is(err, session.ErrPrecondition) {
		m.problem("%s ended with %v, or made more than %d requests", name, err, matrixMost)
	}
	for _, r := range m.srv.Requests()[from:] {
		switch r.Op {
		case faults.OpPut, faults.OpFinalize:
			received[matrixPartOf(r.Object)] += r.Received
		case faults.OpPartsPut:
			u, _ := url.ParseRequestURI(r.Path)
			number, _ := strconv.Atoi(u.Query().Get("partNumber"))
			received[number] += r.Received
		}
	}
	return received, err
}

// upload uploads the file.
func (m *matrixRun) upload(ctx context.Context, with ...func(*upload.Options)) error {
	_, err := m.uploader(append(with, m.options)...).ReaderAt(ctx, bytes.NewReader(m.content), int64(len(m.content)), "v1", spec)
	return err
}

// ids returns the IDs of the saved uploads.
func (m *matrixRun) ids() []string {
	ids, _ := m.store.List(m.t.Context())
	return ids
}

// prune calls Prune, and returns its errors.
func (m *matrixRun) prune(ctx context.Context) (err error) {
	for _, e := range m.uploader(m.options).Prune(ctx, &upload.PruneOptions{MissingSource: m.c.act != actPrune}) {
		err = errors.Join(err, e)
	}
	return err
}

func (m *matrixRun) cancel(ctx context.Context) (err error) {
	for _, id := range m.ids() {
		err = errors.Join(err, m.uploader(m.options).Cancel(ctx, id))
	}
	return err
}

// interrupted makes a call that ends when part 1 is stored, and part 2 is not.
func (m *matrixRun) interrupted() {
	_, err := m.call("interrupted upload", func(ctx context.Context) error {
		ctx, m.interrupt = context.WithCancel(ctx)
		return m.upload(ctx)
	})
	m.interrupt()
	m.interrupt = nil
	if held, _ := m.holding(); !errors.Is(err, context.Canceled) || len(m.ids()) != 1 || held[1] != m.parts[1] {
		m.t.Fatalf("not interrupted: %v, %v\n%s", err, held, strings.Join(m.log, "\n"))
	}
	if m.c.act != actRemove {
		return
	}
	id := m.ids()[0]
	m.plant(id, id, func(t *state.Upload) { t.SourceIdentity, t.SourcePath = "", "/does/not/exist" })
}

// run runs the case, and returns its outcome.
func (m *matrixRun) run() (got matrixOutcome) {
	if m.c.saved {
		m.interrupted()
	}
	held, _ := m.holding()
	do := map[matrixAct]func(context.Context) error{
		actUpload:  func(ctx context.Context) error { return m.upload(ctx) },
		actRestart: func(ctx context.Context) error { return m.upload(ctx, func(o *upload.Options) { o.Restart = true }) },
		actCancel:  m.cancel, actRemove: m.prune, actPrune: m.prune,
	}[m.c.act]
	m.faulty = true
	received, err := m.call("call", do)
	m.faulty = false
	want := m.c.want()
	if m.fired == 0 { // the request was not made
		want = done | kept&want
	}
	switch m.c.act {
	case actUpload:
		got = m.uploaded(want, err)
		for n := 1; n <= 2 && got != otherWay && want&allAgain == 0; n++ {
			if again := received[n] - (m.parts[n] - held[n]); again > 0 && !(n == 2 && (want&part2Again != 0 || m.c.status == "401")) {
				m.problem("%d bytes of part %d were sent twice in one call", again, n)
			}
		}
	case actRestart:
		got = m.uploaded(want, err)
	case actPrune:
		if got = done; len(m.ids()) > 0 {
			got = kept
			m.again(want, held, false)
		} else {
			m.wantNothingLeft(want)
		}
	default:
		got = m.removed(want, err)
	}
	if want&got == 0 {
		m.problem("outcome %v (%v), want %v", got, err, want)
	}
	kinds := map[string]error{"401": session.ErrCredentials, "403": session.ErrPermission}
	if kind := kinds[m.c.status]; got == kept && m.c.is("multipart/*part multipart/complete compose/start compose/compose */cancel-abort */cancel-delete") && kind != nil && !errors.Is(err, kind) {
		m.problem("error %v, want %v", err, kind)
	}
	return got
}

// made reports whether the object exists. It must be right.
func (m *matrixRun) made() bool {
	got, err := m.srv.ReadObject("bkt", "obj")
	if err == nil && !bytes.Equal(got, m.content) {
		m.problem("the object is wrong: %d bytes, want %d", len(got), len(m.content))
	}
	return err == nil
}

// way returns how the object was made.
func (m *matrixRun) way() (way string) {
	for _, r := range m.srv.Requests() {
		if name := map[faults.Op]string{
			faults.OpPartsComplete: "multipart", faults.OpCompose: "compose", faults.OpFinalize: "one connection", faults.OpInsert: "one connection",
		}[r.Op]; r.Object == "obj" && r.Status/100 == 2 && name != "" {
			way = name
		}
	}
	return way
}

// wantNothingLeft checks that the service has only the object, and that no upload is saved.
func (m *matrixRun) wantNothingLeft(want matrixOutcome) {
	if _, left := m.holding(); want&orphan == 0 && len(left) > 0 || len(m.ids()) > 0 {
		m.problem("left at the service: %q; %d uploads are saved", left, len(m.ids()))
	}
}

// uploaded returns the outcome of a call that uploads, and makes the next one if necessary.
func (m *matrixRun) uploaded(want matrixOutcome, err error) matrixOutcome {
	exists, warned := m.made(), m.warned()
	held, _ := m.holding()
	switch saved := len(m.ids()); {
	case err == nil && !exists:
		m.problem("no object")
		return done
	case err == nil && saved == 0:
		m.wantNothingLeft(want)
		if way, asked := m.way(), m.c.way(); way != asked && (way != "multipart" || asked == "compose") {
			return otherWay
		}
		return done
	case err == nil:
		if _, err := m.call("prune", m.prune); err != nil || !warned {
			m.problem("a warning %t about what is left; prune: %v", warned, err)
		}
		m.wantNothingLeft(want)
		return toRemove
	case saved == 0:
		m.wantNothingLeft(want)
		m.again(want, [3]int64{}, exists)
		return unstored
	}
	for n, had := range m.had {
		if lost := had - held[n]; !exists && lost > 0 && want&allAgain == 0 && !(n == 2 && want&part2Again != 0) {
			m.problem("%d stored bytes of part %d were given up", lost, n)
		}
	}
	m.again(want, held, exists)
	return kept
}

// again makes the next call without faults. The service has held, and perhaps the object.
func (m *matrixRun) again(want matrixOutcome, held [3]int64, exists bool) {
	received, err := m.call("next upload", func(ctx context.Context) error { return m.upload(ctx) })
	if err != nil || !m.made() {
		m.problem("the next call failed: %v", err)
	}
	m.wantNothingLeft(want)
	for n := 1; n <= 2 && want&allAgain == 0; n++ {
		missing := m.parts[n] - held[n]
		if exists {
			missing = 0
		}
		if again := received[n] - missing; again > 0 && !(n == 2 && want&part2Again != 0) {
			m.problem("the next call sent %d stored bytes of part %d again", again, n)
		}
	}
}

// removed returns the outcome of a call that removes the upload, and makes the next one if necessary.
func (m *matrixRun) removed(want matrixOutcome, err error) (got matrixOutcome) {
	got = done
	if len(m.ids()) > 0 {
		got = kept
		if err == nil && !(m.c.act == actRemove && m.warned()) {
			m.problem("the upload is still saved, and the call reported nothing")
		}
		again := m.cancel
		if m.c.act == actRemove {
			again = m.prune
		}
		if _, err := m.call("again", again); err != nil {
			m.problem("the next call failed: %v", err)
		}
	} else if err != nil {
		m.problem("the saved upload was deleted, although the call failed: %v", err)
	}
	if m.made() {
		m.problem("there is an object")
	}
	m.wantNothingLeft(want)
	return got
}
