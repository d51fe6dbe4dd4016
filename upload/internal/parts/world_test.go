package parts

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/cloudtest"
	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload/internal/connections"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
	"gcsup/upload/internal/source"
	"gcsup/upload/internal/stream"
)

const (
	mib = 1 << 20
	q   = int64(chunk.Granularity)
	id  = "00112233445566778899" // of the saved upload
)

// world is a service with the bucket bkt, a store of saved uploads, and a file. Its time is virtual.
type world struct {
	*testing.T
	srv     *fakegcs.Server
	network *http.Transport
	client  *session.Client
	store   *state.Dir
	spec    session.Spec
	content []byte
	options Options
	memory  int64
	tries   int // in a row; a retry fails the upload beyond
	link    *connections.Link
	buckets *Buckets
	before  func(*http.Request) // called before each request, one at a time; may be nil
	one     sync.Mutex          // held by before
	seen    int                 // requests

	mu    sync.Mutex
	notes []engine.Note
}

// inBubble runs f in a world whose service has opts.
func inBubble(t *testing.T, opts fakegcs.Options, f func(w *world)) {
	t.Helper()
	dir := testsize.MemDir(t)
	synctest.Test(t, func(t *testing.T) {
		opts.NoIdempotencyTokens = true // no upload may depend on them
		srv, network, stop := cloudtest.Serve(t, &opts)
		defer stop()
		store, err := state.OpenDir(dir)
		require.NoError(t, err)
		defer store.Close()
		w := &world{
			T: t, srv: srv, network: network, store: store,
			spec: session.Spec{Bucket: "bkt", Object: "obj"}, options: Options{Connections: 1, Min: q}, memory: 64 * mib, tries: 2, buckets: &Buckets{},
			link: &connections.Link{Memory: 64 * mib, Held: func() time.Duration { return 0 }, Limited: func() bool { return false }, Failing: func() bool { return false }},
		}
		if w.client, err = session.NewClient(&http.Client{Transport: w}, "http://gcs.test"); err != nil {
			t.Fatal(err)
		}
		f(w)
	})
}

func (w *world) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.before != nil {
		w.one.Lock()
		w.before(req)
		w.one.Unlock()
	}
	return w.network.RoundTrip(req)
}

// The methods of engine.Notes.
func (w *world) Note(n engine.Note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, n)
}
func (w *world) Flowing()                           {}
func (w *world) Committed()                         {}
func (w *world) WantsExchange(context.Context) bool { return false }
func (w *world) Exchange(*engine.Exchange)          {}

// noted returns the causes of the notes of a kind.
func (w *world) noted(kind engine.NoteKind) (causes []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.notes {
		if n.Kind == kind {
			causes = append(causes, n.Cause)
		}
	}
	return causes
}

func (w *world) bucket(b fakegcs.Bucket) {
	w.Helper()
	if err := w.srv.CreateBucket(b); err != nil {
		w.Fatal(err)
	}
}

// fault makes a number of requests of a kind fail, from one with a number from 1.
func (w *world) fault(op faults.Op, from, times int, do faults.Action) {
	w.Helper()
	if err := w.srv.AddFaults(faults.Fault{Match: faults.Match{Op: op}, Skip: from - 1, Times: times, Do: do}); err != nil {
		w.Fatal(err)
	}
}

// status is a reply of the service.
func status(code int) faults.Action { return faults.Action{Effect: faults.EffectStatus, Status: code} }

// ask makes a request of another client.
func (w *world) ask(method, target, body string) string {
	w.Helper()
	reply := httptest.NewRecorder()
	w.srv.ServeHTTP(reply, httptest.NewRequest(method, target, strings.NewReader(body)))
	if reply.Code >= 300 {
		w.Fatalf("%s %s: %d %s", method, target, reply.Code, reply.Body)
	}
	return reply.Body.String()
}

// write writes an object as another client.
func (w *world) write(name, content string) {
	w.Helper()
	w.ask("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name="+name, content)
}

// requests returns the kinds of the requests so far, with the status of those that failed, and forgets them.
func (w *world) requests() string {
	synctest.Wait() // the server counts a request when it ends, after the reply
	var list []string
	all := w.srv.Requests()
	for _, r := range all[w.seen:] {
		switch name := string(r.Op); {
		case r.UserAgent == "": // of ask
		case r.Status == 0:
			list = append(list, name+"!lost")
		case r.Status >= 400:
			list = append(list, fmt.Sprintf("%s!%d", name, r.Status))
		default:
			list = append(list, name)
		}
	}
	w.seen = len(all)
	return strings.Join(list, " ")
}

// division returns what the next process needs. Its journal has the saved upload, if there is one.
func (w *world) division() Division {
	w.Helper()
	same := func(ctx context.Context) context.Context { return ctx }
	call := saved.Call{Store: w.store, Running: &saved.Running{}, Stale: func(error) {}, Last: same, Background: same}
	journal, doc, _, err := saved.Open(w.Context(), call, state.Upload{ID: id, Endpoint: w.client.Endpoint(), Spec: w.spec, SourcePath: "/source"})
	if err == nil && doc != nil {
		err = state.Adopt(w.client, doc)
	}
	if err != nil {
		w.Fatal(err)
	}
	uplink := &engine.Uplink{
		Client: w.client, Budget: engine.NewSharedBudget(engine.RetryRule{Retries: w.tries}), Breaker: backoff.NoBreaker,
		StallTimeout: time.Minute, StallRate: 1 << 10, Notes: w, Tally: &engine.Tally{}, Permit: journal.Lease(),
	}
	return Division{
		Wire: engine.NewRequester(uplink, 0, engine.NewPosition(int64(len(w.content)))).To(w.spec), Uplink: uplink, Journal: journal,
		File: source.FromBytes(w.content, func(int64, int64, int64) {}), Memory: stream.NewMemory(w.memory), Options: w.options, Link: w.link, Began: time.Now(),
	}
}

// way is a way to join parts, and a file that has three of them.
type way struct {
	name string
	Way
	size, last int64 // of the file and of its last part
}

var (
	byMultipart = way{"multipart", Multipart, 2*multipart.MinPart + q, q}
	byCompose   = way{"compose", Compose, 5 * q, q}
)

// begin starts an upload in three parts.
func (w *world) begin(by way) *Upload {
	w.Helper()
	if w.content == nil {
		w.content = random(by.size)
	}
	if by.Way == Compose {
		w.options.Min = 2 * q // each part except the last takes two requests
	}
	d := w.division()
	planner := Planner{Division: d, Multipart: by.Way == Multipart, Compose: by.Way == Compose, Buckets: w.buckets, Size: int64(len(w.content)), ID: id}
	planner.Options.Connections = max(w.options.Connections, 2)
	plan, err := planner.Plan(w.Context())
	if err != nil || plan.Way != by.Way {
		w.Fatalf("%+v, %v", plan, err)
	}
	d.Journal.Begin(chunk.Identity{Size: planner.Size}, plan.Parts)
	w.requests()
	return NewUpload(d, true)
}

// next ends the process of u, which saves the upload, and returns the upload in the next process.
func (w *world) next(u *Upload) *Upload {
	w.Helper()
	if u != nil {
		u.Journal.Keep()
		u.Journal.Close()
	}
	w.requests()
	return NewUpload(w.division(), false)
}

// succeed sends the upload and removes what is left, and checks that the service has the object and nothing else.
func (w *world) succeed(u *Upload) {
	w.Helper()
	o, err := u.Send(w.Context())
	if w.made(u, o, err); u.Unverified != nil {
		w.Error(u.Unverified)
	}
}

// made is succeed after Send returned o and err.
func (w *world) made(u interface{ Finish(context.Context) error }, o *session.Object, err error) {
	w.Helper()
	if err != nil || o.Size != int64(len(w.content)) {
		w.Fatalf("%+v, %v", o, err)
	}
	if err := u.Finish(w.Context()); err != nil {
		w.Error(err)
	}
	if got, err := w.srv.ReadObject(w.spec.Bucket, w.spec.Object); err != nil || !bytes.Equal(got, w.content) {
		w.Errorf("the object has %d other bytes, %v", len(got), err)
	}
	if left := w.stored(); left != "obj" {
		w.Errorf("the service has %s", left)
	}
}

// stored returns the names of the objects, and the number of the parts of each multipart upload.
func (w *world) stored() string {
	w.Helper()
	list, err := w.srv.ListObjects("bkt", "")
	if err != nil {
		w.Fatal(err)
	}
	var names []string
	for _, o := range list {
		names = append(names, o.Name[strings.LastIndexByte(o.Name, '/')+1:])
	}
	uploads := w.ask("GET", "/bkt?uploads", "")
	for _, text := range strings.Split(uploads, "<UploadId>")[1:] {
		upload, _, _ := strings.Cut(text, "<")
		before := uploads[:strings.Index(uploads, text)]
		_, key, _ := strings.Cut(before[strings.LastIndex(before, "<Key>"):], ">")
		key, _, _ = strings.Cut(key, "<")
		names = append(names, fmt.Sprintf("%d parts", strings.Count(w.ask("GET", "/bkt/"+url.PathEscape(key)+"?uploadId="+upload, ""), "<Part>")))
	}
	return strings.Join(names, " ")
}

// token returns the saved upload.
func (w *world) token() *state.Parts {
	w.Helper()
	doc, err := w.store.Load(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return doc.Parts
}

// random returns n random bytes.
func random(n int64) []byte {
	b := make([]byte, n)
	_, _ = io.ReadFull(rand.NewChaCha8([32]byte{1}), b)
	return b
}
