package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// matrixTimeout bounds one call, in virtual time. The retries of a small upload end after about half a
// minute without progress.
const matrixTimeout = 5 * time.Minute

// matrixSize returns the size of the file and of its first part.
func (c *matrixCase) matrixSize() (size, first int64) {
	if c.way() == "compose" {
		return 4 * q, 2 * q
	}
	return session.MultipartMinPart + 1, session.MultipartMinPart
}

// matrixRun is a case that runs. It uploads like one process after the other.
type matrixRun struct {
	*testing.T
	c       *matrixCase
	srv     *fakegcs.Server
	link    *matrixLink
	store   *memoryStore
	content []byte
	parts   [3]int64 // the size of each part, by number

	mu       sync.Mutex
	events   []string
	warned   bool // by the last call
	problems []string
}

// runMatrixCase runs a case, and returns its outcome. It does not return if the case fails.
func runMatrixCase(t *testing.T, c *matrixCase) (outcome string) {
	synctest.Test(t, func(t *testing.T) {
		// With an MD5, which is the ETag of a part, a part is recognized after a lost reply. In the other
		// scenes, the Token has the ETag. The MD5 would take half of the time.
		opts := &fakegcs.Options{NoMD5: c.of.kind != "part"}
		if c.way() == "auto" {
			opts.Latency = 20 * time.Millisecond // a near service gets one connection
		}
		srv, client, stop := upload.ServeBucket(t, opts)
		defer stop()
		size, first := c.matrixSize()
		m := &matrixRun{
			T: t, c: c, srv: srv, store: newMemoryStore(), content: data(size), parts: [3]int64{0, first, size - first},
			link: &matrixLink{c: c, next: client.Transport, srv: srv, stored: make(chan struct{})},
		}
		outcome = m.run()
		for _, p := range m.problems {
			t.Error(p)
		}
		if t.Failed() {
			t.Logf("%s\noutcome: %s\nwant:    %v (%s)\n\nrequests:\n%s\n\nevents:\n%s", c, outcome, c.rule().want, c.rule().why,
				strings.Join(m.link.log, "\n"), strings.Join(m.events, "\n"))
		}
	})
	return outcome
}

func (m *matrixRun) problem(format string, args ...any) {
	m.problems = append(m.problems, fmt.Sprintf(format, args...))
}

// note writes a line between the requests.
func (m *matrixRun) note(format string, args ...any) {
	m.link.mu.Lock()
	defer m.link.mu.Unlock()
	m.link.log = append(m.link.log, "-- "+fmt.Sprintf(format, args...))
}

// uploader returns the Uploader of a new process.
func (m *matrixRun) uploader(with ...func(*upload.Options)) *upload.Uploader {
	opts := &upload.Options{Endpoint: "http://gcs.test", Store: m.store, ChunkSize: q, Observer: m.observe}
	switch m.c.way() {
	case "compose":
		opts.Parallel = composed(2, 2*q)
	case "multipart":
		byMultipart(opts)
	case "either":
		opts.Parallel, opts.ChunkSize = upload.InParts(2, session.MultipartMinPart), 4*mib
	case "auto":
		opts.Parallel, opts.ChunkSize = upload.AutoPartsFrom(0, mib, session.MultipartMinPart), 4*mib
	}
	if m.c.large {
		opts.Memory = q
	}
	for _, f := range with {
		f(opts)
	}
	up, err := upload.New(&http.Client{Transport: m.link}, opts)
	if err != nil {
		m.Fatal(err)
	}
	return up
}

func (m *matrixRun) observe(e upload.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.warned = m.warned || e.Kind == upload.Warning
	if e.Kind != upload.Progress {
		m.events = append(m.events, strings.TrimSpace(fmt.Sprintf("%v part %d %s %v", e.Kind, e.Part, e.Cause, e.Err)))
	}
}

// call makes a call with a bound for its time. It returns the bytes of each part that the service
// received.
func (m *matrixRun) call(name string, f func(context.Context) error) (received [3]int64, err error) {
	ctx, stop := context.WithTimeout(m.Context(), matrixTimeout)
	defer stop()
	m.link.mu.Lock()
	m.link.requests, m.link.stop = 0, stop
	m.link.mu.Unlock()
	m.mu.Lock()
	m.warned = false
	m.events = append(m.events, "-- "+name)
	m.mu.Unlock()
	m.note("%s", name)
	from, began := len(m.srv.Requests()), time.Now()
	err = f(ctx)
	m.note("%s: %v after %v", name, err, time.Since(began).Round(time.Second))
	if took := time.Since(began); took >= matrixTimeout {
		m.problem("%s took %v", name, took)
	} else if ctx.Err() != nil {
		m.problem("%s made more than %d requests", name, matrixMaxRequests)
	}
	if errors.Is(err, session.ErrPrecondition) {
		m.problem("%s: an error of a precondition, although there is none: %v", name, err)
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
	_, err := m.uploader(with...).ReaderAt(ctx, bytes.NewReader(m.content), int64(len(m.content)), "v1", spec)
	return err
}

// ids returns the IDs of the saved uploads.
func (m *matrixRun) ids() []string {
	ids, _ := m.store.List(m.Context())
	return ids
}

// prune calls Prune, and returns its errors.
func (m *matrixRun) prune(ctx context.Context) (err error) {
	for _, e := range m.uploader().Prune(ctx, &upload.PruneOptions{MissingSource: m.c.act != actPrune}) {
		err = errors.Join(err, e)
	}
	return err
}

// interrupt makes a call that ends when part 1 is stored, and part 2 is not.
func (m *matrixRun) interrupt() {
	_, err := m.call("interrupted upload", func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		m.link.mu.Lock()
		m.link.interrupt = cancel
		m.link.mu.Unlock()
		return m.upload(ctx)
	})
	m.link.mu.Lock()
	m.link.interrupt = nil
	m.link.mu.Unlock()
	if h := m.link.holding(); !errors.Is(err, context.Canceled) || len(m.ids()) != 1 || h.bytes[1] != m.parts[1] {
		m.Fatalf("not interrupted: %v, %v\n%s", err, h, strings.Join(m.link.log, "\n"))
	}
	if m.c.act == actRemove {
		for _, id := range m.ids() {
			token, err := m.store.Load(m.Context(), id)
			if err != nil {
				m.Fatal(err)
			}
			token.SourceIdentity, token.SourcePath = "", "/does/not/exist"
			if err := m.store.Save(m.Context(), token); err != nil {
				m.Fatal(err)
			}
		}
	}
}

// run runs the case, and returns its outcome.
func (m *matrixRun) run() string {
	if m.c.saved {
		m.interrupt()
	}
	held := m.link.holding()
	acts := map[matrixAct]struct {
		name string
		do   func(context.Context) error
	}{
		actUpload:  {"upload", func(ctx context.Context) error { return m.upload(ctx) }},
		actRestart: {"restart", func(ctx context.Context) error { return m.upload(ctx, func(o *upload.Options) { o.Restart = true }) }},
		actCancel:  {"cancel", m.cancel},
		actRemove:  {"prune without a source", m.prune},
		actPrune:   {"prune", m.prune},
	}
	m.link.mu.Lock()
	m.link.faulty = true
	m.link.mu.Unlock()
	began := time.Now()
	received, err := m.call(acts[m.c.act].name, acts[m.c.act].do)
	took := time.Since(began)
	m.link.mu.Lock()
	m.link.faulty = false
	fired := m.link.fired > 0
	m.link.mu.Unlock()

	rule := *m.c.rule()
	if !fired {
		rule.want, rule.why = done, "the request was not made"
		if m.c.act == actPrune {
			rule.want = kept
		}
	}
	var got matrixOutcome
	switch m.c.act {
	case actUpload:
		got = m.uploaded(rule, err)
		m.wantReceived(rule, got, held, received)
	case actRestart:
		rule.want |= allAgain // for the call after this one, too
		got = m.uploaded(rule, err)
	case actCancel, actRemove:
		got = m.removed(rule, err)
	case actPrune:
		got = m.pruned(rule, held)
	}
	if rule.want&got == 0 {
		m.problem("outcome %v (%v), want %v: %s", got, err, rule.want, rule.why)
	}
	if (got == kept || got == unstored) && rule.kind != nil && !errors.Is(err, rule.kind) {
		m.problem("error %v, want %v", err, rule.kind)
	}
	if m.c.status == "501" && m.c.of.kind == "initiate" && took > time.Minute && m.c.who == "service" {
		m.problem("the start was retried for %v", took)
	}
	if !fired {
		return notRequested
	}
	return got.String()
}

func (m *matrixRun) cancel(ctx context.Context) (err error) {
	for _, id := range m.ids() {
		err = errors.Join(err, m.uploader().Cancel(ctx, id))
	}
	return err
}

// wantReceived checks that the call sent nothing that the service had, or has since it recognized an
// effect.
func (m *matrixRun) wantReceived(rule matrixRule, got matrixOutcome, held matrixHolding, received [3]int64) {
	if got == otherWay || rule.want&allAgain != 0 {
		return
	}
	for n := 1; n <= 2; n++ {
		if again := received[n] - (m.parts[n] - held.bytes[n]); again > 0 && !(n == 2 && (rule.want&part2Again != 0 || m.c.status == "401")) {
			m.problem("%d bytes of part %d were sent twice in one call", again, n)
		}
	}
}

// object returns whether the object exists. It reports a wrong one.
func (m *matrixRun) object() bool {
	o, ok := m.srv.Object("bkt", "obj")
	if ok && m.c.written && o.Size == int64(len(matrixOther)) {
		return false
	}
	if ok && (o.Size != int64(len(m.content)) || uint32(o.CRC32C) != chunk.Update(0, m.content)) {
		m.problem("the object is wrong: %d bytes, want %d", o.Size, len(m.content))
	}
	return ok
}

// wantOther checks that the object is that of the other client, and cancels the upload.
func (m *matrixRun) wantOther() {
	if got, err := m.srv.ReadObject("bkt", "obj"); err != nil || string(got) != matrixOther {
		m.problem("the object of the other client was replaced: %v", err)
	}
	if _, err := m.call("cancel", m.cancel); err != nil {
		m.problem("cancel: %v", err)
	}
	m.wantNothingLeft(matrixRule{})
}

// way returns how the object was made.
func (m *matrixRun) way() (way string) {
	for _, r := range m.srv.Requests() {
		switch {
		case r.Object != "obj" || r.Status < 200 || r.Status > 201:
		case r.Op == faults.OpPartsComplete:
			way = "multipart"
		case r.Op == faults.OpCompose:
			way = "compose"
		case r.Op == faults.OpFinalize, r.Op == faults.OpInsert:
			way = "one connection"
		}
	}
	return way
}

// wantNothingLeft checks that the service has only the object, and that no upload is saved.
func (m *matrixRun) wantNothingLeft(rule matrixRule) {
	h := m.link.holding()
	if m.c.of.kind == "initiate" {
		h.empty = 0 // only a reply that was lost has the ID
	}
	if rule.want&orphan == 0 && h.uploads+h.empty+len(h.temps) > 0 {
		m.problem("left at the service: %v", h)
	}
	if n := len(m.ids()); n > 0 {
		m.problem("%d uploads are saved", n)
	}
}

// uploaded returns the outcome of a call that uploads, and makes the next one if necessary.
func (m *matrixRun) uploaded(rule matrixRule, err error) matrixOutcome {
	exists, saved, h := m.object(), len(m.ids()), m.link.holding()
	switch {
	case errors.Is(err, session.ErrOutcomeUnknown) && m.c.written: // otherwise one wrong reply about the destination
		m.wantStill(rule, h)
		received, err := m.call("next upload", func(ctx context.Context) error { return m.upload(ctx) })
		if !errors.Is(err, session.ErrOutcomeUnknown) || received != [3]int64{} || saved != 1 {
			m.problem("the next call: %v, %v received, %d saved", err, received, saved)
		}
		m.wantOther()
		return unknown
	case err == nil && !exists && m.c.written: // the service has confirmed the completion, and another client wrote later
		if got, err := m.srv.ReadObject("bkt", "obj"); err != nil || string(got) != matrixOther {
			m.problem("the object of the other client was replaced: %v", err)
		}
		m.wantNothingLeft(rule)
		return done
	case err == nil && !exists:
		m.problem("no object")
		return done
	case err == nil && saved == 0:
		m.wantNothingLeft(rule)
		if way, asked := m.way(), m.c.way(); way != asked && (way != "multipart" || asked == "compose") {
			return otherWay
		}
		return done
	case err == nil:
		if !m.warned {
			m.problem("no warning about what is left")
		}
		if _, err := m.call("prune", m.prune); err != nil {
			m.problem("prune: %v", err)
		}
		m.wantNothingLeft(rule)
		return toRemove
	case saved == 0:
		m.wantStill(rule, matrixHolding{})
		m.wantNothingLeft(rule)
		m.next(rule, h, exists)
		return unstored
	}
	if !exists {
		m.wantStill(rule, h)
	}
	m.next(rule, h, exists)
	return kept
}

// wantStill checks that the service still has what it had when it replied, and has h.
func (m *matrixRun) wantStill(rule matrixRule, h matrixHolding) {
	if rule.want&allAgain != 0 {
		return
	}
	for n, had := range m.link.had.bytes {
		if lost := had - h.bytes[n]; lost > 0 && !(n == 2 && rule.want&part2Again != 0) {
			m.problem("%d stored bytes of part %d were given up", lost, n)
		}
	}
}

// next makes the next call without faults. The service has h, and perhaps the object.
func (m *matrixRun) next(rule matrixRule, h matrixHolding, exists bool) {
	received, err := m.call("next upload", func(ctx context.Context) error { return m.upload(ctx) })
	if m.c.written && errors.Is(err, session.ErrOutcomeUnknown) {
		m.wantOther()
		return
	}
	if err != nil {
		m.problem("the next call failed: %v", err)
	} else if !m.object() {
		m.problem("the next call made no object")
	}
	m.wantNothingLeft(rule)
	if rule.want&allAgain != 0 {
		return
	}
	for n := 1; n <= 2; n++ {
		missing := m.parts[n] - h.bytes[n]
		if exists {
			missing = 0
		}
		if again := received[n] - missing; again > 0 && !(n == 2 && rule.want&part2Again != 0) {
			m.problem("the next call sent %d stored bytes of part %d again", again, n)
		}
	}
}

// removed returns the outcome of a call that removes the upload, and makes the next one if necessary.
func (m *matrixRun) removed(rule matrixRule, err error) matrixOutcome {
	if m.object() {
		m.problem("there is an object")
	}
	if len(m.ids()) == 0 {
		if err != nil {
			m.problem("the saved upload was deleted, although the call failed: %v", err)
		}
		m.wantNothingLeft(rule)
		return done
	}
	if err == nil && !(m.c.act == actRemove && m.warned) {
		m.problem("the upload is still saved, and the call reported nothing")
	}
	again := m.cancel
	if m.c.act == actRemove {
		again = m.prune
	}
	if _, err := m.call("again", again); err != nil {
		m.problem("the next call failed: %v", err)
	}
	m.wantNothingLeft(rule)
	return kept
}

// pruned returns the outcome of a Prune of an upload that can be resumed. held is what the service had.
func (m *matrixRun) pruned(rule matrixRule, held matrixHolding) matrixOutcome {
	if len(m.ids()) == 0 {
		m.wantNothingLeft(rule)
		return done
	}
	m.next(rule, held, false)
	return kept
}
