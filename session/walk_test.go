package session_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/internal/testsize"
	"gcsup/session"
)

// A walk gives every reply to every reachable state until it finds no new state.
// Only State.Failures grows without a bound, and Decide does not depend on it; the
// walk checks that. The states are therefore finite, and what is true for each of
// them is true for sequences of replies of any length.
//
// The walks of more than one byte merge states that differ only in a refused reply whose details
// do not matter later. The other walks have all of these replies in all other states, so that they
// would find a decision that depends on such a detail.
type walk struct {
	t      *testing.T
	insert bool  // begin with one request for the whole object
	total  int64 // bytes in the source
	part   int64 // bytes per request that is not the last
	uri    session.URI

	ids   map[step]int
	steps []step
	free  [][]int // edges without a wait and without newly committed bytes
	edges int
	depth int // of the furthest step from the start

	objects map[int64]*session.Object
	buf     []session.Reply // the result of replies; reused
}

// step is a state and the next step in it.
type step struct {
	state  session.State
	kind   session.Step
	opened bool // there is a session
}

var (
	errReset   = &os.SyscallError{Syscall: "read", Err: connReset}
	errTrust   = x509.UnknownAuthorityError{}
	errTimeout = os.ErrDeadlineExceeded

	errProxy407 = &backoff.ProxyError{Proxy: "http://proxy", Code: 407, Status: "407 Who are you?"}
	//lint:ignore ST1005 This is the error of net/http without CheckProxy.
	errProxy503 = errors.New("Service Unavailable")
)

// Errors of the system. Windows does not return the E constants of package
// syscall.
var connReset, connRefused = systemErrors()

func systemErrors() (reset, refused syscall.Errno) {
	if runtime.GOOS == "windows" {
		return 10054, 10061 // WSAECONNRESET, WSAECONNREFUSED
	}
	return syscall.ECONNRESET, syscall.ECONNREFUSED
}

// refusals lists the replies that every exchange can get. Of replies with the
// same decision in the table test, it has only one.
var refusals = []session.Reply{
	{Err: errReset}, {Err: session.ErrStalled}, {Err: errTrust}, {Err: session.ErrCredentials}, {Err: errProxy407}, {Err: errProxy503},
	{Err: session.ErrURIMismatch}, {Err: session.ErrInvalid},
	{Status: 204}, {Status: 302}, {Status: 302, Redirect: "http://portal"}, {Status: 308, Committed: -1, Redirect: "http://portal"}, {Status: 407},
	{Status: 400}, {Status: 400, Message: "Provided CRC32C does not match"}, {Status: 401}, {Status: 403},
	{Status: 403, Reason: "rateLimitExceeded"}, {Status: 403, Reason: "dailyLimitExceeded"},
	{Status: 404}, {Status: 408}, {Status: 409},
	{Status: 410}, {Status: 410, Inner: 400}, {Status: 410, Inner: 401}, {Status: 410, Inner: 403},
	{Status: 410, Inner: 403, Reason: "rateLimitExceeded"}, {Status: 410, Inner: 412}, {Status: 410, Inner: 499}, {Status: 410, Inner: 503},
	{Status: 412}, {Status: 412, Message: "Provided CRC32C does not match"}, {Status: 416}, {Status: 429, RetryAfter: time.Hour}, {Status: 499}, {Status: 500}, {Status: 503},
}

// Every error is the service's own. An error that ends a session is also listed
// as the error of a proxy.
func init() {
	var foreign []session.Reply
	for i, r := range refusals {
		if r.Status >= 400 {
			switch r.Status {
			case 400, 404, 410, 412, 499:
				foreign = append(foreign, r)
			}
			refusals[i].FromService = true
		}
	}
	refusals = append(refusals, foreign...)
	refusals = append(refusals, session.Reply{Err: errReset, Reused: true}, session.Reply{Err: errReset, Unsent: true})
}

// ambiguous reports whether the effect of the request is not known.
func ambiguous(r session.Reply) bool {
	return r.Status == 0 || r.Status == 408 || r.Status >= 500
}

// TestEveryStateMeetsEveryReply checks the invariants of Decide in all states of
// small uploads. The longest walks run only in .ci/run.
func TestEveryStateMeetsEveryReply(t *testing.T) {
	const q = chunk.Granularity
	totals := []int64{1, q + 1}
	switch {
	case testing.Short(), testsize.Raced(1, 0) == 1: // Decide has no goroutines
		totals = []int64{0}
	case testsize.Full(1, 0) == 1:
		totals = []int64{0, 1, q - 1, q, q + 1, 2*q + 1}
	}
	uri := freshURI(t)
	for _, total := range totals {
		t.Run(fmt.Sprint(total), func(t *testing.T) {
			t.Parallel()
			walkAll(t, total, uri)
		})
	}
}

// walkAll walks all uploads of total bytes, in parallel.
func walkAll(t *testing.T, total int64, uri session.URI) {
	const q = chunk.Granularity
	run := func(name string, walk func(w *walk)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWalk(t, total, uri)
			walk(w)
			w.noFreeCycle()
			t.Logf("%d states, %d transitions; the furthest state is %d exchanges from the start", len(w.steps), w.edges, w.depth)
		})
	}
	for _, source := range []struct {
		name       string
		size       int64 // State.Size at the start
		replayable bool
		temporary  bool
	}{
		{"file", total, true, false}, {"stream of known size", total, false, false}, {"stream", -1, false, false},
		{"compressed file", -1, true, false}, {"temporary object", total, true, true},
	} {
		if total > q && source.name != "file" && testsize.Full(0, 1) == 1 {
			continue // as a file, with more states
		}
		if source.temporary && total > q {
			continue // its states differ only at the end of the data
		}
		for _, part := range []int64{q, 1 << 40} {
			if total < 2*q && part == q {
				continue // the same requests
			}
			run(fmt.Sprintf("%s in parts of %d", source.name, part), func(w *walk) {
				w.part = part
				start := session.State{Size: source.size, Replayable: source.replayable, Temporary: source.temporary}
				w.from(step{state: start, kind: session.Begin})
				if source.size >= 0 || source.replayable {
					w.adopted(start)
				}
			})
		}
	}
	for _, unconditional := range []bool{false, true} {
		run(fmt.Sprintf("one request, unconditional %v", unconditional), func(w *walk) {
			w.insert = true
			w.from(step{state: session.State{Size: total, Replayable: true, Unconditional: unconditional}, kind: session.Begin})
		})
	}
	run("one request, guarded", func(w *walk) {
		w.insert = true
		start := session.State{Size: total, Replayable: true, Unconditional: true}
		for _, generation := range []int64{0, object(total).Generation, 1} {
			w.from(step{state: start.Guarded(generation), kind: session.Begin})
		}
	})
}

func newWalk(t *testing.T, total int64, uri session.URI) *walk {
	return &walk{t: t, total: total, uri: uri, ids: map[step]int{}, objects: map[int64]*session.Object{}}
}

// adopted walks the uploads that an earlier process started.
func (w *walk) adopted(start session.State) {
	const q = chunk.Granularity
	size := start.Size
	for _, committed := range w.offsets(0, w.total) {
		for _, high := range w.offsets(committed, w.total) {
			start.Committed, start.Sent, start.MayExist, start.Adopted = committed, high, high == w.total, true
			if start.Size = size; start.MayExist {
				start.Size = w.total // known at the latest before the last request
			}
			start.Rejected, start.RejectedAt = false, 0
			w.from(step{state: start, kind: session.Query, opened: true})
			if committed == high && w.part == q || w.total == q {
				start.Rejected, start.RejectedAt = true, committed
				w.from(step{state: start, kind: session.Query, opened: true})
			}
		}
	}
}

// from visits all steps that can be reached from s, breadth first.
func (w *walk) from(s step) {
	if _, known := w.ids[s]; known {
		return
	}
	w.ids[s] = len(w.steps)
	w.steps, w.free = append(w.steps, s), append(w.free, nil)
	for level, next := 0, len(w.steps)-1; next < len(w.steps) && !w.t.Failed(); level++ {
		for end := len(w.steps); next < end; next++ {
			w.visit(next)
		}
		w.depth = max(w.depth, level)
	}
}

func (w *walk) visit(id int) {
	s := w.steps[id]
	before := w.under(s)
	replies := w.replies(before, s.kind)
	if !w.recovers(s) {
		w.t.Errorf("%+v: a server without further failures does not end the upload", s)
	}
	for _, r := range replies {
		w.edges++
		after, action := session.Decide(before, r)
		w.check(s, before, r, after, action)
		if w.t.Failed() {
			return
		}
		if action.Step == session.Done || action.Step == session.Fail {
			continue
		}
		next := step{state: after, kind: action.Step, opened: s.opened || r.Op == session.OpStart && !r.URI.IsZero()}
		if action.Step == session.Begin {
			next.opened = false
		}
		next.state.Failures = 0
		if w.total > 1 {
			next.state = next.state.Merged()
		}
		to, known := w.ids[next]
		if !known {
			to = len(w.steps)
			w.ids[next] = to
			w.steps, w.free = append(w.steps, next), append(w.free, nil)
		}
		if !action.Wait && after.Committed <= before.Committed {
			w.free[id] = append(w.free[id], to)
		}
	}
}

// check checks the invariants of one decision.
func (w *walk) check(s step, before session.State, r session.Reply, after session.State, a session.Action) {
	fail := func(format string, args ...any) {
		w.t.Helper()
		w.t.Errorf("total %d, %s in\n  %+v\nreply %+v\n  %+v\n  %+v:\n"+format,
			append([]any{w.total, s.kind, before, r, after, a}, args...)...)
	}
	if !(0 <= after.Committed && after.Committed <= after.Sent && (after.Size < 0 || after.Sent <= after.Size)) {
		fail("not 0 <= Committed <= Sent <= Size")
	}
	newSession := after.Restarts > before.Restarts || r.Op == session.OpStart
	if after.Committed < before.Committed && !newSession {
		fail("Committed decreased")
	}
	if after.Sent < before.Sent && !newSession {
		fail("Sent decreased")
	}
	if after.Restarts > session.MaxRestarts || after.Restarts > before.Restarts && !before.Replayable {
		fail("too many sessions")
	}
	if after.Restarts > before.Restarts && a.Step != session.Begin {
		fail("a new session does not begin")
	}
	if (ambiguous(r) || r.Status == 401 || r.Status == 429 || r.Status == 200 && r.Object == nil && r.Op != session.OpStart) && a.Step == session.Send {
		fail("data after a request whose outcome is not known")
	}
	if (ambiguous(r) || r.Status == 429) && a.Step != session.Fail && !a.Wait && !r.Reused && after.Restarts == before.Restarts {
		fail("no wait after a failure")
	}
	if after.Restarts > before.Restarts && session.Destructive(before, r) && (r.Op != session.OpQuery || !r.FromService) {
		fail("a session is abandoned after one reply")
	}
	if a.Step == session.Fail && (session.Destructive(before, r) || s.opened && (r.Status == 412 || r.Status == 499)) && !r.FromService {
		fail("a reply that is not the service's ends the upload")
	}
	if before.Temporary && errors.Is(a.Err, session.ErrPrecondition) {
		fail("the precondition of a temporary object is not the caller's")
	}
	if before.Unconditional && r.Op == session.OpInsert && ambiguous(r) && !r.Unsent && a.Step == session.Begin {
		fail("an insert is repeated although its outcome is not known")
	}
	_, guarded := after.Guard()
	if before.Unconditional && before.MayExist && s.kind == session.Check && a.Step == session.Begin && !guarded {
		fail("an insert is repeated without a precondition")
	}
	if _, guarded := before.Guard(); guarded && a.Step == session.Fail && errors.Is(a.Err, session.ErrPrecondition) {
		fail("a precondition failed that the caller did not set")
	}
	refused := r.Err == session.ErrCredentials || r.Err == session.ErrURIMismatch || r.Err == session.ErrInvalid
	if (r.Status == 0 || r.Redirect != "" || r.Status == 407) && !refused && (s.opened || s.kind == session.Check) && a.Step == session.Fail {
		fail("the upload ends although a session was opened and only the network failed")
	}
	if a.Wait && a.Err == nil {
		fail("a wait without its cause")
	}
	if moved := after.Committed > before.Committed; !moved && after.Failures != before.Failures+count(a.Wait) || moved && after.Failures != count(a.Wait) {
		fail("failures not counted, or reset without progress")
	}
	if a.Wait && r.RetryAfter > a.RetryAfter {
		fail("Retry-After is lost")
	}
	opened := s.opened || r.Op == session.OpStart && !r.URI.IsZero()
	switch a.Step {
	case session.Send, session.Finish, session.Query:
		if !opened {
			fail("a request without a session")
		}
		if a.Step == session.Finish && (after.Size < 0 || after.Committed != after.Size) {
			fail("finished too early")
		}
	case session.Check:
		if !after.MayExist && !guarded && !after.Temporary {
			fail("the destination is checked although no request can have made the object")
		}
	case session.Done:
		if a.Object == nil || after.Size >= 0 && a.Object.Size != after.Size {
			fail("done without the object")
		}
	case session.Fail:
		var kinds []error
		for kind := range sentinelNames {
			if errors.Is(a.Err, kind) {
				kinds = append(kinds, kind)
			}
		}
		if len(kinds) != 1 {
			fail("the error has the sentinels %v, want one", kinds)
		}
		if a.Err.Op != r.Op && r.Op != session.OpStat && !a.Err.Open || a.Err.Offset != after.Committed {
			fail("the error is not that of the reply")
		}
	}
	// No decision depends on the number of failures.
	before.Failures = 1000
	again, b := session.Decide(before, r)
	if after.Committed <= before.Committed && again.Failures != 1000+count(a.Wait) {
		fail("failures not counted, or reset without progress")
	}
	again.Failures = after.Failures
	if again != after || b.Step != a.Step || b.Wait != a.Wait {
		fail("another decision after more failures")
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// offsets returns the offsets in [from, to] for which decisions may differ.
func (w *walk) offsets(from, to int64) []int64 {
	const q = chunk.Granularity
	var in []int64
	for _, n := range []int64{0, 1, q - 1, q, q + 1, 2 * q, w.total - 1, w.total} {
		known := false
		for _, o := range in {
			known = known || o == n
		}
		if from <= n && n <= to && !known {
			in = append(in, n)
		}
	}
	return in
}

// next returns the end of the next request, and whether it is the last one.
func (w *walk) next(committed int64) (to int64, last bool) {
	boundary := chunk.LastBoundary(w.total)
	if committed >= boundary {
		return w.total, true
	}
	return min(chunk.Floor(committed+min(w.part, w.total)), boundary), false
}

// under returns the state during the exchange. With the last data of a stream
// its size is known.
func (w *walk) under(s step) session.State {
	if _, last := w.next(s.state.Committed); last && s.kind == session.Send {
		s.state.Size = w.total
	}
	return s.state
}

// replies returns all replies to an exchange, until the next call.
func (w *walk) replies(s session.State, kind session.Step) []session.Reply {
	out := w.buf[:0]
	add := func(op session.Op, sent int64, replies ...session.Reply) {
		for _, r := range replies {
			r.Op, r.Sent = op, sent
			if r.Status != 308 {
				r.Committed = -1
			}
			out = append(out, r)
		}
	}
	defer func() { w.buf = out }()
	finished := []session.Reply{
		{Status: 200}, {Status: 200, Object: w.object(w.total)}, {Status: 201, Object: w.object(w.total)},
		{Status: 200, Object: w.object(w.total + 1)}, {Status: 200, Object: w.object(max(0, w.total-1))},
	}
	var open []session.Reply
	for _, held := range append(w.offsets(1, w.total), -1, w.total+1) {
		open = append(open, session.Reply{Status: 308, Committed: held})
	}
	switch kind {
	case session.Begin:
		if w.insert {
			add(session.OpInsert, 0, refusals...)
			add(session.OpInsert, w.total, refusals...)
			add(session.OpInsert, w.total, finished...)
			add(session.OpInsert, w.total, open...)
			break
		}
		add(session.OpStart, 0, session.Reply{Status: 200, URI: w.uri}, session.Reply{Status: 201, URI: w.uri}, session.Reply{Status: 200})
		add(session.OpStart, 0, session.Reply{Status: 308, Committed: -1}, session.Reply{Status: 200, Err: errors.New("the reply has no Location header")})
		add(session.OpStart, 0, refusals...)
	case session.Send:
		from, op := s.Committed, session.OpPut
		to, last := w.next(from)
		if last {
			op = session.OpFinalize
		}
		for _, sent := range w.offsets(from, to) {
			add(op, sent, session.Reply{Err: errReset}, session.Reply{Status: 408}, session.Reply{Status: 503})
		}
		add(op, from, refusals...)
		add(op, to, refusals...)
		add(op, from, finished...)
		add(op, to, finished...)
		add(op, from, open...)
		add(op, to, open...)
	case session.Finish:
		add(session.OpFinalize, s.Size, refusals...)
		add(session.OpFinalize, s.Size, finished...)
		add(session.OpFinalize, s.Size, open...)
	case session.Query:
		add(session.OpQuery, 0, refusals...)
		add(session.OpQuery, 0, finished...)
		add(session.OpQuery, 0, open...)
		add(session.OpQuery, 0, session.Reply{Status: 308, Committed: s.Committed, Findings: session.Findings{Differs: true}})
	case session.Check:
		add(session.OpStat, 0, refusals...)
		add(session.OpStat, 0, finished...)
		add(session.OpStat, 0, session.Reply{Status: 200, Object: w.object(w.total), Findings: session.Findings{Ours: true}})
		add(session.OpStat, 0, session.Reply{Status: 200, Object: w.object(w.total), Findings: session.Findings{Ours: true, Older: true}}, session.Reply{Status: 200, Object: w.object(w.total), Findings: session.Findings{Older: true}})
	}
	return out
}

// recovers reports whether the upload ends if no further request fails. The
// server has the committed bytes and no object. The upload must end with the
// object, or with the failure that was already to be confirmed.
func (w *walk) recovers(s step) bool {
	for range 12 {
		before := w.under(s)
		r := session.Reply{Committed: -1}
		switch s.kind {
		case session.Begin:
			r.Op, r.Status, r.URI = session.OpStart, 200, w.uri
			if w.insert {
				r.Op, r.URI, r.Sent, r.Object = session.OpInsert, session.URI{}, w.total, w.object(w.total)
			}
		case session.Query:
			r.Op, r.Status, r.Committed = session.OpQuery, 308, before.Committed
			if before.Committed == 0 {
				r.Committed = -1
			}
		case session.Send, session.Finish:
			if to, last := w.next(before.Committed); !last {
				r.Op, r.Status, r.Sent, r.Committed = session.OpPut, 308, to, to
				break
			}
			r.Op, r.Status, r.Sent, r.Object = session.OpFinalize, 200, w.total, w.object(w.total)
		case session.Check:
			r.Op, r.Status, r.FromService = session.OpStat, 404, true
		}
		after, a := session.Decide(before, r)
		switch a.Step {
		case session.Done:
			return true
		case session.Fail:
			return s.kind == session.Check || a.Err.Open
		}
		s = step{state: after, kind: a.Step, opened: true}
	}
	return false
}

// noFreeCycle fails if requests can repeat indefinitely without a wait and
// without progress.
func (w *walk) noFreeCycle() {
	if cycle := findCycle(w.free); cycle != nil {
		w.t.Errorf("total %d: an endless loop of requests without a wait and without progress:", w.total)
		for _, id := range cycle {
			w.t.Errorf("  %s in %+v", w.steps[id].kind, w.steps[id].state)
		}
	}
}

// findCycle returns the nodes of a cycle in a graph, or nil. edges[i] are the nodes that an edge
// leads to from node i.
func findCycle(edges [][]int) []int {
	const unseen, open, closed = 0, 1, 2
	mark := make([]int, len(edges))
	var path []int
	var visit func(id int) (cycle []int)
	visit = func(id int) []int {
		mark[id] = open
		path = append(path, id)
		for _, next := range edges[id] {
			if mark[next] == open {
				return path[slices.Index(path, next):]
			}
			if mark[next] == unseen {
				if cycle := visit(next); cycle != nil {
					return cycle
				}
			}
		}
		path = path[:len(path)-1]
		mark[id] = closed
		return nil
	}
	for id := range edges {
		if mark[id] == unseen {
			if cycle := visit(id); cycle != nil {
				return cycle
			}
		}
	}
	return nil
}

// object returns a finished object of a size. It is always the same pointer, so
// that states can be compared.
func (w *walk) object(size int64) *session.Object {
	if w.objects[size] == nil {
		w.objects[size] = object(size)
	}
	return w.objects[size]
}

// object returns a finished object of a size.
func object(size int64) *session.Object {
	return &session.Object{Bucket: "bucket", Name: "object", Generation: 7, Size: size}
}

// TestStateIsComparable checks that the walk compares every field of State.
func TestStateIsComparable(t *testing.T) {
	if !reflect.TypeFor[session.State]().Comparable() {
		t.Fatal("State is not comparable: the walk cannot tell states apart")
	}
}
