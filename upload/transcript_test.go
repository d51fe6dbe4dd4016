package upload_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

var updateTranscripts = flag.Bool("update", false, "rewrite testdata/transcripts")

const transcriptDir = "testdata/transcripts"

// Documentation of the service's side of the conversations.
const (
	docUpload       = "https://cloud.google.com/storage/docs/performing-resumable-uploads"
	docChunks       = docUpload + "#chunked-upload"
	docStatus       = docUpload + "#status-check"
	docErrors       = docUpload + "#handling_errors"
	docResumable    = "https://cloud.google.com/storage/docs/resumable-uploads"
	docSession      = docResumable + "#session-uris"
	docSmall        = "https://cloud.google.com/storage/docs/uploading-objects#rest-upload-objects"
	docCodes        = "https://cloud.google.com/storage/docs/json_api/v1/status-codes"
	docRetry        = "https://cloud.google.com/storage/docs/retry-strategy"
	docIdempotency  = docRetry + "#idempotency"
	docPrecondition = "https://cloud.google.com/storage/docs/request-preconditions"
	docCompose      = "https://cloud.google.com/storage/docs/composing-objects"
	docValidation   = "https://cloud.google.com/storage/docs/data-validation"
)

// A transcript is an upload whose requests and replies are kept in a file.
type transcript struct {
	name  string // of the file
	about string // description: what happens, and why the upload succeeds
	url   string // the source of the protocol fact
	opts  fakegcs.Options
	run   func(s *scribe)
}

var transcripts = []transcript{
	{
		name: "01-large-file",
		about: `A file of 9 MiB, and nothing fails. The first request opens a session. The second one carries
all bytes up to the last multiple of 256 KiB before the end. The third one carries the rest, and
the CRC32C of the whole file: the service refuses a damaged object before it exists.`,
		url: docUpload,
		run: func(s *scribe) { s.upload(random(9*mib), upload.Spec{}) },
	},
	{
		name: "02-small-file",
		about: `A file of up to 8 MiB goes in one request, with its CRC32C in the metadata. There is no session
and nothing to resume. After a failure the whole file is sent again.`,
		url: docSmall,
		run: func(s *scribe) { s.upload(random(1000), upload.Spec{}) },
	},
	{
		name: "03-short-commit",
		about: `The service keeps less than the client sent: the first 256 KiB of 512. The client uses the
offset in the Range header, not the number of bytes that it sent. It continues there, and no byte
is missing.`,
		url: docChunks,
		opts: faulty(faults.Fault{Match: faults.Match{Op: faults.OpPut},
			Do: faults.Action{Effect: faults.EffectShortCommit, Bytes: q}}),
		run: func(s *scribe) { s.upload(random(4*q), upload.Spec{}, inParts) },
	},
	{
		name: "04-cut-request",
		about: `The connection breaks while data is on its way. The client cannot know how much arrived. It
asks, and continues at the offset that the service reports. It does not wait after the first
break, because that connection was used before and may have been closed while it was idle. It
waits after the second one.`,
		url: docStatus,
		opts: faulty(
			faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: q + 1000}},
			faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: 1000}}),
		run: func(s *scribe) { s.upload(random(4*q), upload.Spec{}, inParts) },
	},
	{
		name: "05-lost-last-reply",
		about: `The reply to the last request is lost. The object may exist or not. The client asks before it
sends anything again. A finished session answers a query with the object.`,
		url:  docStatus,
		opts: faulty(faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectLoseReply}}),
		run:  func(s *scribe) { s.upload(random(3*q), upload.Spec{}, inParts) },
	},
	{
		name: "06-session-lost",
		about: `The service has lost the session. One 404 is not enough to abandon committed bytes: the client
waits and asks. The second 404 confirms the first. A new session starts at byte 0, and the file
can be read again.`,
		url: docErrors,
		opts: faulty(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 1,
			Do: faults.Action{Effect: faults.EffectNotFound}}),
		run: func(s *scribe) { s.upload(random(5*q), upload.Spec{}, inParts) },
	},
	{
		name: "07-session-gone-of-a-rate-limit",
		about: `The service answers 410, and the body has the cause: the object was changed too often. The query
confirms it. A new session would meet the same limit, so the client waits 30 s before it opens
one.`,
		url: docCodes,
		opts: faulty(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 1,
			Do: faults.Action{Effect: faults.EffectGone, Status: 429}}),
		run: func(s *scribe) { s.upload(random(5*q), upload.Spec{}, inParts) },
	},
	{
		name: "08-404-of-a-load-balancer",
		about: `A 404 without the service's JSON and without X-GUploader-UploadID comes from something between
client and service. It is no reason to abandon the session. The client waits and asks the
service, which still holds everything. No committed byte is sent again.`,
		url: docErrors,
		opts: faulty(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 1,
			Do: faults.Action{Effect: faults.EffectStatus, Status: 404, Body: "<html>default backend - 404</html>"}}),
		run: func(s *scribe) { s.upload(random(5*q), upload.Spec{}, inParts) },
	},
	{
		name: "09-precondition-unmet",
		about: `The object must not exist, but it does. The service compares preconditions only after the last
byte. The client therefore looks first. It sends no byte, and the object stays as it was.`,
		url: docPrecondition,
		run: func(s *scribe) {
			s.write([]byte("from before"))
			s.failing(random(9*mib), upload.Spec{IfGenerationMatch: new(int64)}, session.ErrPrecondition)
			s.w.wantObject("obj", []byte("from before"))
		},
	},
	{
		name: "10-precondition-lost-to-ourselves",
		about: `The object must not exist. The first request makes it, but the reply is lost. The second request
is refused, because the object exists now. (For two minutes, the service returns the first reply
instead. Here it does not, because the client does not depend on that.) The client looks before it
believes the refusal. The object has the size and the CRC32C of the source: the upload succeeded.`,
		url: docIdempotency,
		opts: fakegcs.Options{NoIdempotencyTokens: true, Faults: []faults.Fault{
			{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: faults.EffectLoseReply}}}},
		run: func(s *scribe) { s.upload(random(1000), upload.Spec{IfGenerationMatch: new(int64)}) },
	},
	{
		name: "11-stream",
		about: `The length of a stream is not known before its end. Every part but the last has the total "*".
The last one has the total and the CRC32C. A part stays in memory until the service has
committed it.`,
		url: docChunks,
		run: func(s *scribe) { s.stream(random(4*q + 1000)) },
	},
	{
		name: "12-empty-stream",
		about: `A stream ends before its first byte. A stream that ends within 256 KiB goes in one request, with its
checksum, as a small file does.`,
		url: docUpload,
		run: func(s *scribe) { s.stream(nil) },
	},
	{
		name: "13-resume-in-a-second-process",
		about: `The first process is interrupted in mid-upload. It asks once what the service holds, and saves the
answer. The session's URI is in its store. The second process asks again, compares the MD5 with the
file, and sends the rest. No committed byte is sent twice.`,
		url: docStatus,
		run: func(s *scribe) {
			content := random(9 * mib)
			path := s.w.file(content)
			s.note("the first process")
			s.w.interrupt(path, 5*mib, s.listen)
			s.note("the second process")
			s.file(path, spec, nil)
			s.w.wantObject("obj", content)
		},
	},
	{
		name: "14-takeover-of-a-copy",
		about: `Another machine gets the saved upload and a copy of the file. It needs nothing else: the URI of
a session is all that a client must have. The client compares the copy with what the service
holds before it sends the rest. The object is never a mix of two files.`,
		url: docSession,
		run: func(s *scribe) {
			content := random(9 * mib)
			s.note("the first machine")
			saved := s.w.export(s.w.interrupt(s.w.file(content), 5*mib, s.listen).ID)
			store, path := s.w.elsewhere(content)
			defer store.Close()
			s.w.letPass(path)
			s.note("the second machine, which imports the upload")
			up := s.uploader(func(o *upload.Options) { o.Store = store })
			id, err := up.Import(s.w.t.Context(), decode(s.w.t, saved), path)
			if err != nil {
				s.w.t.Fatal(err)
			}
			_, err = up.Resume(s.w.t.Context(), id)
			s.end(err, nil)
			s.w.wantObject("obj", content)
		},
	},
	{
		name: "15-damage-on-the-way",
		about: `A bit of the second part changes on the way. The service reports the CRC32C of what it holds,
and it differs from the file's. Committed bytes cannot be replaced, so the client starts over in
a new session. If the service does not send this header, it refuses the object after the last
byte.`,
		url: docValidation,
		opts: fakegcs.Options{Faults: []faults.Fault{{Match: faults.Match{Op: faults.OpPut}, Skip: 1,
			Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}}}},
		run: func(s *scribe) { s.upload(random(5*q), upload.Spec{}, inParts) },
	},
	{
		name: "16-too-many-requests",
		about: `The service is busy and asks for a wait of 7 s. The client waits that long. Then it asks what
the service holds, because it may have kept a part of the failed request. Here it kept nothing.`,
		url: docRetry,
		opts: faulty(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 1,
			Do: faults.Action{Effect: faults.EffectStatus, Status: 429, RetryAfter: "7"}}),
		run: func(s *scribe) { s.upload(random(5*q), upload.Spec{}, inParts) },
	},
	{
		name: "17-credentials-expire",
		about: `The access token expires in mid-upload, but the session does not. The transport gets a new
token, and the client asks at once what the service holds. A second 401 would end the call and
keep the session.`,
		url: docCodes,
		opts: fakegcs.Options{RequireToken: true, Faults: []faults.Fault{{Match: faults.Match{Op: faults.OpPut}, Skip: 1,
			Do: faults.Action{Effect: faults.EffectRevoke}}}},
		run: func(s *scribe) {
			s.w.srv.AllowToken("token-1")
			s.w.srv.AllowToken("token-2")
			s.w.http.Transport = &tokens{next: s.w.http.Transport}
			s.upload(random(5*q), upload.Spec{}, inParts)
		},
	},
	{
		name: "18-another-writer",
		about: `The reply to a small file is lost. During the wait another client writes the same object.
Sending the file again would replace what that client wrote. The client looks first, finds an
object that is newer than its own attempt, and reports that the outcome is unknown. Nothing is
replaced.`,
		url:  docIdempotency,
		opts: faulty(faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: faults.EffectLoseReply}}),
		run: func(s *scribe) {
			s.waiting = func() {
				s.note("another client writes the object")
				s.write([]byte("of another writer"))
			}
			s.failing(random(1000), upload.Spec{}, session.ErrOutcomeUnknown)
			s.w.wantObject("obj", []byte("of another writer"))
		},
	},
	{
		name: "19-stall",
		about: `The connection is open, but no more bytes move. The client does not wait until TCP notices. It
cancels a request that lags two minutes behind 64 KiB/s, waits, asks what arrived, and continues
there.`,
		url: docStatus,
		opts: faulty(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 1,
			Do: faults.Action{Effect: faults.EffectStallBody, Bytes: q}}),
		run: func(s *scribe) { s.upload(random(5*q), upload.Spec{}, inParts) },
	},
	{
		name: "20-parts-by-compose",
		about: `A file in two parts, for an object that must not exist yet. The client looks at the destination
and at the bucket first. Each part becomes a temporary object through a session of its own, with its
CRC32C. The compose has that of the whole file, and the precondition. It also deletes the parts,
because the bucket has soft delete and would keep them otherwise. The last requests make sure that
nothing is left.`,
		url:  docCompose,
		opts: fakegcs.Options{Latency: 10 * time.Millisecond},
		run: func(s *scribe) {
			s.unrecorded(func() { s.w.patchBucket(`{"softDeletePolicy":{"retentionDurationSeconds":"604800"}}`) })
			s.upload(random(3*q+1000), upload.Spec{IfGenerationMatch: new(int64)}, func(o *upload.Options) { o.Parallel = upload.AutoPartsFrom(0, q, 2*q) }, inParts)
		},
	},
}

// inParts makes a file of some hundred KiB use several requests.
func inParts(o *upload.Options) { o.ChunkSize = 2 * q }

// faulty returns options with a fault plan.
func faulty(plan ...faults.Fault) fakegcs.Options { return fakegcs.Options{Faults: plan} }

// TestTranscripts checks that each conversation is the one in its file. The flag
// -update rewrites the files.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	skipShort(t)
	want := map[string]bool{}
	for _, c := range slices.Concat(transcripts, partsTranscripts, autoTranscripts) {
		want[c.name+".txt"] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got string
			inBubbleWithMD5(t, &c.opts, func(w *world) {
				w.slow = c.opts.Latency > 0
				s := newScribe(w)
				c.run(s)
				for _, f := range w.srv.FaultReport() {
					if !f.Done {
						t.Errorf("the fault did not happen: %+v", f)
					}
				}
				got = c.about + "\n" + c.url + "\n\n" + s.text()
			})
			compareTranscript(t, filepath.Join(transcriptDir, c.name+".txt"), got)
		})
	}
	files, err := os.ReadDir(transcriptDir)
	require.NoError(t, err)
	for _, f := range files {
		if !want[f.Name()] {
			t.Errorf("no conversation has the transcript %s", f.Name())
		}
	}
}

// compareTranscript compares a conversation with its file, or writes the file.
func compareTranscript(t *testing.T, path, got string) {
	t.Helper()
	if strings.Contains(got, "upload_id=") || strings.Contains(got, "uploadId=") {
		t.Error("the transcript shows the address of a session or a multipart upload")
	}
	if t.Failed() {
		t.Logf("the conversation:\n%s", got)
		return
	}
	if *updateTranscripts {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	want := strings.ReplaceAll(string(b), "\r\n", "\n")
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	n := 0
	for n < min(len(g), len(w)) && g[n] == w[n] {
		n++
	}
	line := func(lines []string) string {
		if n < len(lines) {
			return fmt.Sprintf("%q", lines[n])
		}
		return "the end"
	}
	t.Errorf("%s:%d: %s, but the conversation has %s; -update rewrites the file. The conversation:\n%s", path, n+1, line(w), line(g), got)
}

// scribe records the conversation of a client with the service of a world. It is the
// transport of that client.
type scribe struct {
	w       *world
	next    http.RoundTripper
	plain   *http.Client // its requests are not recorded
	waiting func()       // if not nil, called during the first wait

	dead      atomic.Bool // the process is killed, and makes no further request
	settling  atomic.Bool
	mu        sync.Mutex
	lines     []line
	exchanges map[any]upload.Exchange // by ExchangeOf

	// In the order in which they were seen.
	sessions, multiparts, generations []string
}

// A line is an entry of a transcript. One of these fields is set.
type line struct {
	exchange *recorded
	event    *upload.Event
	note     string
}

// recorded is an exchange.
type recorded struct {
	req    *http.Request
	head   []byte // the first bytes of the request's body
	resp   *http.Response
	body   []byte // of resp
	broken error  // the error if the reply, or the rest of it, did not arrive
}

func newScribe(w *world) *scribe {
	s := &scribe{w: w, next: w.http.Transport, plain: &http.Client{Transport: w.http.Transport}, exchanges: map[any]upload.Exchange{}}
	w.http.Transport = s
	return s
}

// listen removes the jitter of waits, and records the events and the decisions.
func (s *scribe) listen(o *upload.Options) {
	o.Policy.Jitter = backoff.NoJitter
	o.Exchange = func(x upload.Exchange) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.exchanges[upload.ExchangeOf(x.Context())] = x
	}
	o.Observer = func(e upload.Event) {
		s.add(line{event: &e})
		if e.Kind == upload.Waiting && s.waiting != nil {
			s.waiting()
			s.waiting = nil
		}
	}
}

func (s *scribe) uploader(with ...func(*upload.Options)) *upload.Uploader {
	return s.w.uploader(append(with, s.listen)...)
}

// upload uploads content from a file to the object of the world.
func (s *scribe) upload(content []byte, conditions upload.Spec, with ...func(*upload.Options)) {
	s.file(s.w.file(content), destination(conditions), nil, with...)
	s.w.wantObject("obj", content)
	s.w.wantSaved(0)
}

// failing uploads content from a file, which must fail with want.
func (s *scribe) failing(content []byte, conditions upload.Spec, want error) {
	s.file(s.w.file(content), destination(conditions), want)
	s.w.wantSaved(0)
}

func destination(conditions upload.Spec) upload.Spec {
	conditions.Bucket, conditions.Object = spec.Bucket, spec.Object
	return conditions
}

func (s *scribe) file(path string, to upload.Spec, want error, with ...func(*upload.Options)) {
	_, err := s.uploader(with...).File(s.w.t.Context(), path, to)
	s.end(err, want)
}

// stream uploads content whose length is not known.
func (s *scribe) stream(content []byte) {
	_, err := s.uploader(smallWindow).Reader(s.w.t.Context(), pieces(content), spec)
	s.end(err, nil)
	s.w.wantObject("obj", content)
}

// end records the error of an upload, and compares it with the wanted one.
func (s *scribe) end(err, want error) {
	synctest.Wait()
	switch {
	case !errors.Is(err, want):
		s.w.t.Errorf("error = %v, want %v", err, want)
	case err == nil:
		s.note("done: the object has the size and the CRC32C of the source")
	default:
		s.note("fail: " + want.Error())
	}
}

// write makes the object, like another client.
func (s *scribe) write(content []byte) {
	c, err := session.NewClient(s.plain, "http://gcs.test")
	if err != nil {
		s.w.t.Error(err)
		return
	}
	r := c.Insert(context.Background(), spec, int64(len(content)), checksum.Update(0, content), bytes.NewReader(content))
	if r.Status != 200 {
		s.w.t.Errorf("the other client: %+v", r)
	}
}

// unrecorded calls f without recording its requests.
func (s *scribe) unrecorded(f func()) {
	recording := s.w.http
	s.w.http = s.plain
	f()
	s.w.http = recording
}

func (s *scribe) note(text string) { s.add(line{note: text}) }

func (s *scribe) add(l line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, l)
}

// RoundTrip makes one exchange and records it.
func (s *scribe) RoundTrip(req *http.Request) (*http.Response, error) {
	if s.dead.Load() {
		return nil, errDead
	}
	if s.settling.CompareAndSwap(false, true) { // otherwise another request waits
		synctest.Wait() // for the earlier events
		s.settling.Store(false)
	}
	x := &recorded{req: req}
	if req.Body != nil && req.Body != http.NoBody {
		own := *req
		own.Body = &listener{ReadCloser: req.Body, x: x, mu: &s.mu}
		req = &own
	}
	resp, err := s.next.RoundTrip(req)
	x.broken = err
	if err == nil {
		x.body, x.broken = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		x.resp = resp
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(x.body), failingReader{cmp.Or(x.broken, io.EOF)}))
	} else if cause := context.Cause(req.Context()); cause != nil {
		x.broken = cause
	}
	s.add(line{exchange: x})
	return resp, err
}

// failingReader returns an error.
type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// listener keeps the first bytes of a request's body. The transport may read it
// even after the reply.
type listener struct {
	io.ReadCloser
	x  *recorded
	mu *sync.Mutex
}

func (l *listener) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.x.head = append(l.x.head, p[:min(n, 1024-len(l.x.head))]...)
	return n, err
}

// tokens adds an access token to each request, and another one after a 401, like the
// transports of Google's libraries.
type tokens struct {
	next  http.RoundTripper
	spent int
}

func (t *tokens) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", fmt.Sprintf("Bearer token-%d", t.spent+1))
	resp, err := t.next.RoundTrip(req)
	if err == nil && resp.StatusCode == 401 {
		t.spent++
	}
	return resp, err
}

// text returns the conversation.
func (s *scribe) text() string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := slices.DeleteFunc(slices.Clone(s.lines), func(l line) bool {
		return l.event != nil && l.event.Kind != upload.Waiting && l.event.Kind != upload.Undivided && l.event.Kind != upload.Divided
	})
	sortDeletes(lines)
	var entries []string
	for i, l := range lines {
		var b strings.Builder
		switch {
		case l.exchange != nil:
			s.writeRequest(&b, l.exchange)
			s.writeReply(&b, l.exchange)
			s.writeDecision(&b, l.exchange, lines[i+1:])
		case l.note != "":
			fmt.Fprintf(&b, "-- %s --\n", l.note)
		case l.event.Kind != upload.Waiting:
			fmt.Fprintf(&b, "-- %s: %s --\n", l.event.Kind, l.event.Cause)
		default:
			continue
		}
		entries = append(entries, b.String())
	}
	text := strings.Join(merged(entries), "\n")
	for _, id := range slices.Concat(s.sessions, s.multiparts) {
		if strings.Contains(text, id) {
			s.w.t.Error("the transcript shows the secret of a session")
		}
	}
	return text
}

// merged replaces equal entries in a row by one, and their number.
func merged(entries []string) (short []string) {
	for i := 0; i < len(entries); {
		n := 1
		for i+n < len(entries) && entries[i+n] == entries[i] {
			n++
		}
		short = append(short, entries[i])
		if n > 1 {
			short = append(short, fmt.Sprintf("-- this exchange %d times in all --\n", n))
		}
		i += n
	}
	return short
}

// sortDeletes sorts requests that delete temporary objects, because they are made
// concurrently.
func sortDeletes(lines []line) {
	deletes := func(l line) bool {
		return l.exchange != nil && l.exchange.req.Method == "DELETE" && strings.Contains(l.exchange.req.URL.Path, "/o/gcsup-parts/")
	}
	first := slices.IndexFunc(lines, deletes)
	if first < 0 {
		return
	}
	end := first
	for end < len(lines) && deletes(lines[end]) {
		end++
	}
	slices.SortFunc(lines[first:end], func(a, b line) int { return cmp.Compare(a.exchange.req.URL.Path, b.exchange.req.URL.Path) })
}

// requestHeaders and replyHeaders are the headers that a transcript shows.
var (
	requestHeaders = []string{"Authorization", "Content-Type", "X-Upload-Content-Length", "Content-Range", "Content-Length", "X-Goog-Hash", "X-GUploader-No-308", "Connection"}
	replyHeaders   = []string{"Location", "Range", "X-Range-MD5", "X-Goog-Running-Hash", "Retry-After", "X-GUploader-UploadID", "Content-Type"}

	// In replies of the XML API, these have what the JSON API has in the body.
	xmlReplyHeaders = []string{"ETag", "X-Goog-Hash", "X-Goog-Generation"}
)

// override has the status of a reply that is sent as 200, because the request has
// X-GUploader-No-308: proxies treat 308 as a redirect.
const override = "X-HTTP-Status-Code-Override"

func (s *scribe) writeRequest(b *strings.Builder, x *recorded) {
	fmt.Fprintf(b, "> %s %s\n", x.req.Method, s.target(x.req.URL))
	for _, name := range requestHeaders {
		value := x.req.Header.Get(name)
		switch {
		case name == "Content-Length" && x.req.Method != "GET":
			value = fmt.Sprint(x.req.ContentLength)
		case name == "Connection" && x.req.Close:
			value = "close"
		}
		if kind, _, ok := strings.Cut(value, "boundary="); ok {
			value = kind + "boundary=…"
		}
		if value != "" {
			fmt.Fprintf(b, "> %s: %s\n", name, value)
		}
	}
	if x.req.Method != "POST" {
		return
	}
	if text, ok := s.xmlSummary(x.head); ok {
		fmt.Fprintf(b, "> %s\n", text)
		return
	}
	head := string(x.head)
	if at := strings.Index(head, "{"); at >= 0 {
		var meta json.RawMessage
		if json.NewDecoder(strings.NewReader(head[at:])).Decode(&meta) == nil {
			fmt.Fprintf(b, "> %s\n", s.scrub(string(meta)))
		}
	}
}

func (s *scribe) writeReply(b *strings.Builder, x *recorded) {
	if x.resp == nil {
		fmt.Fprintf(b, "< no reply: %s\n", breakage(x))
		return
	}
	if x.resp.StatusCode == 200 && x.resp.Header.Get(override) == "308" {
		fmt.Fprintf(b, "< 308 Resume Incomplete (as 200 with %s: 308)\n", override)
	} else {
		fmt.Fprintf(b, "< %d %s\n", x.resp.StatusCode, http.StatusText(x.resp.StatusCode))
	}
	headers := replyHeaders
	if isXML(x.req) {
		headers = slices.Concat(headers, xmlReplyHeaders)
	}
	for _, name := range headers {
		value := x.resp.Header.Get(name)
		switch {
		case value == "":
			continue
		case name == "Location":
			u, err := url.Parse(value)
			if err != nil {
				s.w.t.Error(err)
				continue
			}
			value = s.target(u)
		case name == "X-GUploader-UploadID":
			if x.resp.StatusCode < 400 {
				continue
			}
			value = "…"
		case name == "Content-Type":
			if len(x.body) == 0 || strings.HasPrefix(value, "application/") {
				continue
			}
		case name == "X-Goog-Generation":
			value = s.scrub(value)
		}
		fmt.Fprintf(b, "< %s: %s\n", name, value)
	}
	if text, ok := s.xmlSummary(x.body); ok {
		fmt.Fprintf(b, "< %s\n", text)
	} else if len(x.body) > 0 {
		fmt.Fprintf(b, "< %s\n", s.scrub(summary(x.body)))
	}
}

// breakage describes why there was no reply. It does not use the error of the
// network, which differs between runs: the failure occurs when a body is written or
// when a reply is read.
func breakage(x *recorded) string {
	switch {
	case errors.Is(x.broken, session.ErrStalled):
		return "the client cancels the request"
	case errors.Is(x.broken, context.DeadlineExceeded):
		return "the process ends"
	}
	return errBroken.Error()
}

var errBroken = errors.New("the connection broke")

// summary returns a body on one line. For JSON it returns the fields that a client
// needs.
func summary(body []byte) string {
	var object struct {
		Name       string `json:"name,omitempty"`
		Generation string `json:"generation,omitempty"`
		Size       string `json:"size,omitempty"`
		CRC32C     string `json:"crc32c,omitempty"`
		Error      *struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors,omitempty"`
		} `json:"error,omitempty"`
	}
	if json.Unmarshal(body, &object) != nil {
		return strings.Join(strings.Fields(string(body)), " ")
	}
	out, _ := json.Marshal(object)
	if string(out) == "{}" { // the JSON of a bucket
		return strings.Join(strings.Fields(string(body)), " ")
	}
	return string(out)
}

// writeDecision writes the decision after x, and the wait that it makes.
func (s *scribe) writeDecision(b *strings.Builder, x *recorded, after []line) {
	exchange := s.exchanges[upload.ExchangeOf(x.req.Context())]
	next := exchange.Next
	if next == nil {
		return
	}
	fmt.Fprintf(b, "decision: %s\n", s.scrub(decision(*next)))
	if !next.Wait {
		return
	}
	for _, l := range after {
		if l.event != nil && l.event.Kind == upload.Waiting && l.event.Part == exchange.Part {
			fmt.Fprintf(b, "wait: %.4g s\n", l.event.Delay.Seconds())
			return
		}
	}
	s.w.t.Error("no wait follows the decision to wait")
}

// decision returns the words for a decision. Those for a lost reply are the same as in
// breakage.
func decision(a session.Action) string {
	if a.Err != nil && a.Err.Status == 0 && !errors.Is(a.Err, session.ErrStalled) {
		a.Err = &session.Error{Kind: a.Err.Kind, Err: errBroken}
	}
	return a.String()
}

// target returns the URL with a number instead of the secret of a session or a multipart
// upload.
func (s *scribe) target(u *url.URL) string {
	q := u.Query()
	if id := q.Get("upload_id"); id != "" {
		return numbered("session", &s.sessions, id)
	}
	if id := q.Get("uploadId"); id != "" {
		q.Del("uploadId")
		return strings.TrimSuffix(numbered("multipart upload", &s.multiparts, id)+"?"+q.Encode(), "?")
	}
	short := *u
	if q.Has("fields") {
		q.Set("fields", "")
		short.RawQuery = q.Encode() + "…"
	}
	return s.scrub(short.RequestURI())
}

// numbered returns the words for a value that differs between runs, such as "(session 1)".
// seen has the values so far.
func numbered(what string, seen *[]string, value string) string {
	n := slices.Index(*seen, value)
	if n < 0 {
		n = len(*seen)
		*seen = append(*seen, value)
	}
	return fmt.Sprintf("(%s %d)", what, n+1)
}

// temporary is the prefix of temporary objects, which has the ID of the upload and is
// random.
var temporary = regexp.MustCompile(`gcsup-parts(/|%2F)(?:stream-)?[0-9a-z]+-[A-Z2-7]+`)

var generation = regexp.MustCompile(`\b\d{15,}\b`)

// scrub replaces generations, which come from the clock, by their order.
func (s *scribe) scrub(text string) string {
	text = temporary.ReplaceAllString(text, "gcsup-parts$1(upload)")
	return generation.ReplaceAllStringFunc(text, func(g string) string { return numbered("generation", &s.generations, g) })
}
