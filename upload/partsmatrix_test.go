package upload_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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
	name  string           // the way, a slash, and the request, with what precedes it
	act   matrixAct        // the call
	saved bool             // an interrupted call precedes: the service has part 1, and by compose half of part 2
	of    matrixRequest    // the request whose replies are wrong
	since *matrixCondition // after this request; nil means from the beginning
}

type matrixAct int

const (
	actUpload  matrixAct = iota // ReaderAt
	actRestart                  // ReaderAt with Options.Restart
	actCancel                   // Cancel
	actRemove                   // Prune of an upload whose source is missing
	actPrune                    // Prune of an upload that can be resumed
)

// matrixScenes are all scenes. The way "auto" is that of Parts.Auto.
var matrixScenes = []matrixScene{
	{name: "multipart/initiate", of: matrixRequest{"initiate", 0}},
	{name: "auto/initiate", of: matrixRequest{"initiate", 0}},
	{name: "auto/left-session", of: matrixRequest{"cancel", 0}},
	{name: "multipart/part", of: matrixRequest{"part", 2}},
	{name: "multipart/list", of: matrixRequest{"list", 0}},
	{name: "multipart/resume-list", of: matrixRequest{"list", 0}, saved: true},
	{name: "multipart/complete", of: matrixRequest{"complete", 0}},
	{name: "multipart/lost-stat", of: matrixRequest{"stat", 0}, since: &matrixCondition{"complete", "lost", true}},
	{name: "multipart/described-stat", of: matrixRequest{"stat", 0}, since: &matrixCondition{"complete", "", true}},
	{name: "multipart/cancel-abort", of: matrixRequest{"abort", 0}, saved: true, act: actCancel},
	{name: "multipart/restart-abort", of: matrixRequest{"abort", 0}, saved: true, act: actRestart},
	{name: "multipart/remove-abort", of: matrixRequest{"abort", 0}, saved: true, act: actRemove},
	{name: "multipart/prune-list", of: matrixRequest{"list", 0}, saved: true, act: actPrune},
	{name: "compose/start", of: matrixRequest{"start", 2}},
	{name: "compose/put", of: matrixRequest{"put", 2}},
	{name: "compose/finalize", of: matrixRequest{"finalize", 2}},
	{name: "compose/put-query", of: matrixRequest{"query", 2}, since: &matrixCondition{"put", "lost", true}},
	{name: "compose/resume-query", of: matrixRequest{"query", 2}, saved: true},
	{name: "compose/compose", of: matrixRequest{"compose", 0}},
	{name: "compose/lost-stat", of: matrixRequest{"stat", 0}, since: &matrixCondition{"compose", "lost", true}},
	{name: "compose/missing-stat", of: matrixRequest{"stat", 2}, since: &matrixCondition{"compose", "404", false}},
	{name: "compose/delete", of: matrixRequest{"delete", 2}},
	{name: "compose/cancel-session", of: matrixRequest{"cancel", 2}, saved: true, act: actCancel},
	{name: "compose/cancel-delete", of: matrixRequest{"delete", 1}, saved: true, act: actCancel},
	{name: "compose/restart-session", of: matrixRequest{"cancel", 2}, saved: true, act: actRestart},
	{name: "compose/restart-delete", of: matrixRequest{"delete", 1}, saved: true, act: actRestart},
	{name: "compose/remove-delete", of: matrixRequest{"delete", 1}, saved: true, act: actRemove},
	{name: "compose/prune-query", of: matrixRequest{"query", 2}, saved: true, act: actPrune},
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
	after       bool   // the service executed the request; otherwise it did not see it
	times       string // how many requests in a row get the reply: once, twice, or always, until the call returns
}

func (c *matrixCase) String() string {
	when := map[bool]string{false: "before", true: "after"}[c.after]
	return fmt.Sprintf("%s/%s/%s/%s/%s", c.name, c.status, c.who, when, c.times)
}

// matrixCases returns all cases, in a fixed order.
func matrixCases() (cases []*matrixCase) {
	wrong := []string{"part", "list", "complete", "finalize", "query", "compose", "stat"} // can describe something else
	for i := range matrixScenes {
		s := &matrixScenes[i]
		for _, r := range matrixReplies {
			for _, times := range []string{"once", "twice", "always"} {
				for _, after := range []bool{false, true} {
					switch {
					case after && (s.of.reads() || times == "always"), r.status == "404" && r.who == "service" && s.of.kind == "initiate":
					case r.status == "wrong" && (times != "once" || !slices.Contains(wrong, s.of.kind)):
					default:
						cases = append(cases, &matrixCase{s, r.status, r.who, after, times})
					}
				}
			}
		}
	}
	return cases
}

// matrixRemovals are the scenes in which something is removed that is stored or saved.
const matrixRemovals = "compose/delete */cancel-* */restart-* */remove-*"

// retried reports whether the reply only means that the same request may succeed later.
func (c *matrixCase) retried() bool { return c.who != "service" || c.status == "503" }

// harmless reports whether the reply must have no effect.
func (c *matrixCase) harmless() bool {
	return c.retried() && c.times != "always" && !c.is("compose/missing-stat */prune-*")
}

// confirmed reports whether the service confirms that what it stores does not exist. Something may then be left that is not
// saved, and all parts may be sent again.
func (c *matrixCase) confirmed() bool {
	absent := c.status == "404" || c.status == "200" && c.is("*/initiate auto/* multipart/described-stat "+matrixRemovals)
	return c.who == "service" && c.times != "once" && absent
}

// TestPartsMatrix uploads a file in parts, and gives its requests wrong replies: once, twice in a row and always, with and without
// an effect at the service. The object is right or absent, nothing stored is lost, and nothing is left that is not saved. The
// model checks of package decide give all replies to the tables. The tests of package parts have the errors, the plans, and
// the requests that follow.
//
// CI runs all cases, and go test a fixed selection. A pattern with a slash selects from all cases:
//
//	go test ./upload -run 'TestPartsMatrix/multipart/part/403$/service/before/once'
func TestPartsMatrix(t *testing.T) {
	t.Parallel()
	cases, every := matrixCases(), testsize.Raced(20, testsize.Full(1, 5))
	if testing.Short() {
		every = 101
	}
	if strings.Contains(flag.Lookup("test.run").Value.String(), "TestPartsMatrix/") {
		every = 1
	}
	scenes := map[string][]*matrixCase{}
	for i, c := range cases {
		if i%every == 0 {
			scenes[c.name] = append(scenes[c.name], c)
		}
	}
	for name, cases := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran, made := false, false // the request
			for _, c := range cases {
				t.Run(strings.TrimPrefix(c.String(), name+"/"), func(t *testing.T) { ran, made = true, runMatrixCase(t, c) || made })
			}
			if ran && !made {
				t.Error("no case makes its request")
			}
		})
	}
}

// matrixRequest is a kind of request. part is the number of the part that it is about, or 0.
type matrixRequest struct {
	kind string
	part int
}

// reads reports whether the request changes nothing at the service.
func (r matrixRequest) reads() bool {
	return slices.Contains([]string{"stat", "list", "query"}, r.kind)
}

func (r matrixRequest) xml() bool {
	return slices.Contains([]string{"initiate", "part", "list", "complete", "abort"}, r.kind)
}

// matrixRequestOf returns the kind of an HTTP request.
func matrixRequestOf(req *http.Request) matrixRequest {
	q, p := req.URL.Query(), req.URL.Path
	switch {
	case q.Has("uploads"):
		return matrixRequest{"initiate", 0}
	case q.Has("uploadId"):
		number, _ := strconv.Atoi(q.Get("partNumber"))
		return matrixRequest{map[string]string{"PUT": "part", "GET": "list", "POST": "complete", "DELETE": "abort"}[req.Method], number}
	case strings.HasPrefix(p, "/upload/"):
		var from, to, size int64
		sent := req.Header.Get("Content-Range")
		n, _ := fmt.Sscanf(sent, "bytes %d-%d/%d", &from, &to, &size)
		kind := "finalize"
		switch {
		case !q.Has("upload_id"):
			kind = "start"
		case req.Method == "DELETE":
			kind = "cancel"
		case sent == "bytes */*":
			kind = "query"
		case n == 3 && to+1 < size:
			kind = "put"
		}
		return matrixRequest{kind, matrixPartOf(q.Get("name"))}
	case strings.HasSuffix(p, "/compose"):
		return matrixRequest{"compose", 0}
	case strings.Contains(p, "/o/"):
		return matrixRequest{map[string]string{"GET": "stat", "DELETE": "delete"}[req.Method], matrixPartOf(p)}
	}
	return matrixRequest{"bucket", 0}
}

// matrixPartOf returns the number of the part from the name of its temporary object, or 0.
func matrixPartOf(name string) int {
	if n, err := strconv.Atoi(path.Base(name)); err == nil {
		return n + 1
	}
	return 0
}

// matrixCondition is a request after which replies are wrong. It gets a wrong reply itself if status is not "".
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
	first   int64           // the size of part 1
	stored  context.Context // done when the service has part 1
	release func()          // ends stored

	mu        sync.Mutex
	faulty    bool     // replies are replaced
	met       bool     // the condition is met
	interrupt func()   // ends the call when part 2 is sent; nil if it is not interrupted
	stop      func()   // ends a call that makes too many requests
	requests  int      // of the call
	fired     int      // replies that were replaced
	log       []string // calls and replaced replies
}

const (
	matrixTimeout = 5 * time.Minute // of one call. The retries of a small upload end after about half a minute
	matrixMost    = 400             // requests of one call. An upload without faults makes about ten
)

// RoundTrip makes a request, and replaces its reply.
func (m *matrixRun) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	r := matrixRequestOf(req)
	if err := m.await(req.Context(), r); err != nil {
		discard(req.Body)
		return nil, err
	}
	status, who, after := m.replaced(r)
	if status == "" || after {
		resp, err = m.next.RoundTrip(req)
		made := err == nil && resp.StatusCode == http.StatusOK && resp.Header.Get("X-Http-Status-Code-Override") == ""
		if made && (r == matrixRequest{"part", 1} || r == matrixRequest{"finalize", 1}) {
			m.release()
		}
	} else {
		discard(req.Body)
	}
	if status == "" {
		return resp, err
	}
	if resp != nil {
		discard(resp.Body)
	}
	if status == "lost" {
		return nil, errReset
	}
	return matrixReply(req, r, status, who), nil
}

// discard reads a body to its end, if there is one.
func discard(body io.ReadCloser) {
	if body != nil {
		_, _ = io.Copy(io.Discard, body)
		_ = body.Close()
	}
}

// await delays part 2 until the service has part 1. It returns an error if the request is not made.
func (m *matrixRun) await(ctx context.Context, r matrixRequest) error {
	if r.part == 2 && (r.kind == "part" || r.kind == "start") {
		select {
		case <-m.stored.Done():
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
	case r != c.of, c.times == "once" && m.fired == 1, c.times == "twice" && m.fired == 2:
		return "", "", false
	}
	m.fired++
	m.log = append(m.log, fmt.Sprintf("%v: the reply is replaced", r))
	return c.status, c.who, c.after
}

// matrixErrors are the names of errors, in XML and in JSON.
var matrixErrors = map[int][2]string{
	401: {"AuthenticationRequired", "authError"}, 403: {"AccessDenied", "forbidden"}, 404: {"NoSuchUpload", "notFound"},
	409: {"OperationAborted", "conflict"}, 503: {"ServiceUnavailable", "backendError"},
}

// matrixReply returns a wrong reply.
func matrixReply(req *http.Request, r matrixRequest, status, who string) *http.Response {
	code, err := strconv.Atoi(status)
	if err != nil {
		code = http.StatusOK // "wrong"
	}
	header := http.Header{"X-Guploader-Uploadid": {"x"}}
	body, contentType := `{}`, "application/json; charset=UTF-8"
	switch {
	case who == "stranger":
		header, body, contentType = http.Header{}, "<html>log in</html>", "text/html"
	case status == "wrong":
		header["X-Goog-Generation"], header["Etag"] = []string{"7"}, []string{`"0123456789abcdef0123456789abcdef"`}
		if r.kind != "part" {
			header["X-Goog-Hash"] = []string{"crc32c=AAAAAA=="}
		}
		body = `{"kind":"storage#object","bucket":"bkt","name":"other","generation":"7","metageneration":"1","size":"3",` +
			`"crc32c":"AAAAAA==","componentCount":1}`
		if name := map[string]string{"list": "ListPartsResult", "complete": "CompleteMultipartUploadResult"}[r.kind]; name != "" {
			body, contentType = "<"+name+"></"+name+">", "application/xml"
		}
	case r.xml():
		body, contentType = "<Other></Other>", "application/xml; charset=UTF-8"
		if code != http.StatusOK {
			body = "<?xml version='1.0' encoding='UTF-8'?><Error><Code>" + matrixErrors[code][0] + "</Code><Message>fault</Message></Error>"
		}
	case code != http.StatusOK:
		body = fmt.Sprintf(`{"error":{"code":%d,"message":"fault","errors":[{"message":"fault","domain":"global","reason":%q}]}}`,
			code, matrixErrors[code][1])
	}
	header.Set("Content-Type", contentType)
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: req,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
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
		m := &matrixRun{world: w, c: c, next: w.http.Transport, content: data(size), first: first}
		m.stored, m.release = context.WithCancel(w.t.Context())
		defer m.release()
		w.http = &http.Client{Transport: m}
		m.run()
		if fired = m.fired > 0; w.t.Failed() {
			w.t.Errorf("%s\n%s\n%s", c, strings.Join(m.log, "\n"), w.trace())
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
	case "auto":
		o.Parallel, o.ChunkSize = upload.AutoPartsFrom(0, mib, multipart.MinPart), 4*mib
	}
}

// call makes a call with a bound for its time.
func (m *matrixRun) call(name string, f func(context.Context) error) error {
	ctx, stop := context.WithTimeout(m.t.Context(), matrixTimeout)
	defer stop()
	m.mu.Lock()
	m.requests, m.stop, m.events = 0, stop, nil
	m.mu.Unlock()
	err := f(ctx)
	m.mu.Lock()
	m.log = append(m.log, fmt.Sprintf("%s: %v", name, err))
	m.mu.Unlock()
	if ctx.Err() != nil || errors.Is(err, session.ErrPrecondition) {
		m.t.Errorf("%s ended with %v, or made more than %d requests", name, err, matrixMost)
	}
	if got, err := m.srv.ReadObject("bkt", "obj"); err == nil && !bytes.Equal(got, m.content) {
		m.t.Errorf("after %s the object has %d bytes that are not the file's %d", name, len(got), len(m.content))
	}
	return err
}

// received returns how many bytes of each part the service received in all calls. Those of an object that was sent over one
// connection are part 0.
func (m *matrixRun) received() (bytes [3]int64) {
	synctest.Wait() // the server counts a request when it ends, after the reply
	for _, r := range m.srv.Requests() {
		switch r.Op {
		case faults.OpPut, faults.OpFinalize, faults.OpInsert:
			bytes[matrixPartOf(r.Object)] += r.Received
		case faults.OpPartsPut:
			u, _ := url.ParseRequestURI(r.Path)
			number, _ := strconv.Atoi(u.Query().Get("partNumber"))
			bytes[number] += r.Received
		}
	}
	return bytes
}

func (m *matrixRun) upload(ctx context.Context, with ...func(*upload.Options)) error {
	_, err := m.uploader(append(with, m.options)...).ReaderAt(ctx, bytes.NewReader(m.content), int64(len(m.content)), "v1", spec)
	return err
}

// ids returns the IDs of the saved uploads.
func (m *matrixRun) ids() []string {
	ids, _ := m.store.List(m.t.Context())
	return ids
}

// act makes the call of the scene.
func (m *matrixRun) act(ctx context.Context) (err error) {
	switch m.c.act {
	case actCancel:
		for _, id := range m.ids() {
			err = errors.Join(err, m.uploader(m.options).Cancel(ctx, id))
		}
	case actRemove, actPrune:
		return m.prune(ctx)
	default:
		return m.upload(ctx, func(o *upload.Options) { o.Restart = m.c.act == actRestart })
	}
	return err
}

func (m *matrixRun) prune(ctx context.Context) (err error) {
	for _, e := range m.uploader(m.options).Prune(ctx, &upload.PruneOptions{MissingSource: m.c.act != actPrune}) {
		err = errors.Join(err, e)
	}
	return err
}

// interrupted makes a call that ends when part 1 is stored, and part 2 is not.
func (m *matrixRun) interrupted() {
	err := m.call("interrupted upload", func(ctx context.Context) error {
		ctx, m.interrupt = context.WithCancel(ctx)
		return m.upload(ctx)
	})
	m.interrupt()
	m.interrupt = nil
	if !errors.Is(err, context.Canceled) || len(m.ids()) != 1 || m.received()[1] != m.first {
		m.t.Fatalf("not interrupted: %v, %v\n%s", err, m.received(), m.trace())
	}
	if m.c.act == actRemove {
		id := m.ids()[0]
		m.plant(id, id, func(t *state.Upload) { t.SourceIdentity, t.SourcePath = "", "/does/not/exist" })
	}
}

// run runs the case. The object must be right or absent, and what the service stored must be in it, saved or removed.
func (m *matrixRun) run() {
	c := m.c
	if c.saved {
		m.interrupted()
	}
	m.faulty = true
	err := m.call("call", m.act)
	m.faulty = false
	made := c.is("auto/left-session multipart/described-stat compose/delete") // the object, or it needs no session
	if err != nil && (c.harmless() || made || m.fired == 0) {
		m.t.Errorf("the call failed: %v", err)
	}
	switch saved := len(m.ids()) > 0; {
	case c.act == actCancel || c.act == actRemove:
		m.removed(err, saved)
	case c.act != actPrune:
		m.uploaded(err, saved)
	case saved:
		m.uploaded(errors.New("not pruned"), saved)
	}
	m.wantSaved(0)
	if c.confirmed() || c.is(matrixRemovals) && !c.harmless() {
		return // something may be left that is not saved
	}
	if m.wantNoLeftovers(); c.of.kind == "initiate" { // only a reply that was lost has the ID of an empty multipart upload
		m.wantNoParts()
	} else {
		m.wantNoUploads()
	}
}

// uploaded checks what is stored and saved after a call that ended with err, and makes the next call if necessary.
func (m *matrixRun) uploaded(err error, saved bool) {
	c := m.c
	switch {
	case err != nil:
		if stored := m.received()[1]; saved != (stored > 0) && c.way() != "auto" {
			m.t.Errorf("%d bytes of part 1 are stored, the upload is saved: %t", stored, saved)
		}
		if err := m.call("next upload", func(ctx context.Context) error { return m.upload(ctx) }); err != nil {
			m.t.Errorf("the next call failed: %v", err)
		}
	case saved: // something could not be removed
		if c.harmless() || !c.is("compose/delete */restart-*") || m.saw(upload.Warning) == 0 {
			m.t.Errorf("the upload stays saved, with %d warnings", m.saw(upload.Warning))
		}
		if err := m.call("prune", m.prune); err != nil {
			m.t.Errorf("the removal of the rest failed: %v", err)
		}
	}
	m.wantObject("obj", m.content)
	received, size := m.received(), int64(len(m.content))
	refused := c.status == "401" || !c.retried() && c.is("multipart/part compose/put compose/finalize compose/*-query") // part 2
	switch alone := received[0] > 0; {
	case c.confirmed() || c.act == actRestart: // stored bytes may be sent again
	case alone && (received[1] > 0 || c.of.kind != "initiate") && c.way() != "auto",
		received[1] > m.first, received[1]+received[2] > size && !refused:
		m.t.Errorf("%d bytes are sent over one connection, and of parts of %d and %d bytes %d and %d", received[0], m.first,
			size-m.first, received[1], received[2])
	}
}

// removed checks what is saved after a call that removes the upload, and makes the next one if necessary.
func (m *matrixRun) removed(err error, saved bool) {
	if reported := err != nil || m.c.act == actRemove && m.saw(upload.Warning) > 0; saved && !reported || !saved && err != nil {
		m.t.Errorf("the upload is saved: %t, after %v with %d warnings", saved, err, m.saw(upload.Warning))
	}
	if saved {
		if err := m.call("again", m.act); err != nil {
			m.t.Errorf("the next call failed: %v", err)
		}
	}
	m.wantNoObject("obj")
}
