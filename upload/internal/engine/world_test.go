package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/checksum"
	"gcsup/internal/cloudtest"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload/internal/content"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/netconn"
	"gcsup/upload/internal/source"
)

const q = int64(chunk.Granularity)

var spec = session.Spec{Bucket: "bkt", Object: "obj"}

// world is a server in virtual time, and an uplink to it whose waits have no jitter. It has the notes
// of the uplink.
type world struct {
	t      *testing.T
	srv    *fakegcs.Server
	uplink *engine.Uplink
	dials  atomic.Int64

	part         int             // of a requester
	record       engine.Recorder // of a transfer
	precondition engine.Precondition
	socket       syscall.Conn // of all connections; nil if they have none

	mu        sync.Mutex
	log       []string // see String
	notes     []engine.Note
	exchanges []*engine.Exchange

	flowing, committed atomic.Int64
	unwanted           bool   // exchanges are not described
	onWait             func() // called before each wait, if it is set
}

// inBubble runs f in a world. The server ignores idempotency tokens, because nothing may depend on them.
func inBubble(t *testing.T, opts fakegcs.Options, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts.NoIdempotencyTokens = true
		srv, transport, stop := cloudtest.Serve(t, &opts)
		defer stop()
		w := &world{t: t, srv: srv, record: engine.Unrecorded{}}
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			w.dials.Add(1)
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			if w.socket != nil {
				conn = socketConn{conn, w.socket}
			}
			return netconn.New(conn), nil // which sends bodies from their memory
		}
		client, err := session.NewClient(&http.Client{Transport: transport}, "http://gcs.test")
		require.NoError(t, err)
		w.uplink = &engine.Uplink{
			Client: client, Policy: backoff.Policy{Jitter: backoff.NoJitter}, Budget: engine.NewSharedBudget(engine.RetryRule{}),
			StallTimeout: 2 * time.Minute, StallRate: 64 << 10, Notes: w, Tally: new(engine.Tally),
		}
		f(w)
	})
}

// socketConn is a connection that has the socket of another one.
type socketConn struct {
	net.Conn
	socket syscall.Conn
}

func (c socketConn) SyscallConn() (syscall.RawConn, error) { return c.socket.SyscallConn() }

// requester returns a requester for the object of spec.
func (w *world) requester(spec session.Spec) *engine.Requester {
	return engine.NewRequester(w.uplink, w.part, engine.NewPosition(-1)).To(spec)
}

// transfer returns the transfer of src to spec.
func (w *world) transfer(spec session.Spec, src content.Source, o engine.TransferOptions) *engine.Transfer {
	return engine.NewTransfer(w.requester(spec), src, w.record, o)
}

// run returns a run that sends src to spec.
func (w *world) run(spec session.Spec, src content.Source, o engine.TransferOptions) *engine.Run {
	return engine.NewRun(w.transfer(spec, src, o), &w.precondition, session.State{Size: src.Total()})
}

// file returns data as the source of a transfer.
func file(data []byte) *source.File { return source.FromBytes(data, func(int64, int64, int64) {}) }

// shared has the bytes of all sources. No test may change it.
var shared = func() []byte {
	b := make([]byte, 20<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}()

func data(n int64) []byte { return shared[:n:n] }

// on returns faults, each for the next request of an operation.
func on(op faults.Op, do ...faults.Action) (list []faults.Fault) {
	for _, a := range do {
		list = append(list, faults.Fault{Match: faults.Match{Op: op}, Do: a})
	}
	return list
}

// always returns a fault of all requests of an operation.
func always(op faults.Op, do faults.Action) []faults.Fault {
	return []faults.Fault{{Match: faults.Match{Op: op}, Times: -1, Do: do}}
}

func (w *world) add(list ...faults.Fault) {
	w.t.Helper()
	require.NoError(w.t, w.srv.AddFaults(list...))
}

func effect(e faults.Effect) faults.Action { return faults.Action{Effect: e} }

func status(code int) faults.Action {
	return faults.Action{Effect: faults.EffectStatus, Status: code}
}

// insert makes the object as another client does.
func (w *world) insert(data []byte) *session.Object {
	w.t.Helper()
	r := w.uplink.Client.Insert(w.t.Context(), spec, int64(len(data)), checksum.Update(0, data), bytes.NewReader(data))
	if r.Object == nil {
		w.t.Fatalf("the other client: %+v", r)
	}
	return r.Object
}

// wantObject fails unless the object has these bytes. There must be none if want is nil.
func (w *world) wantObject(want []byte) {
	w.t.Helper()
	got, err := w.srv.ReadObject("bkt", "obj")
	if (err == nil) != (want != nil) || !bytes.Equal(got, want) {
		w.t.Errorf("the object has %d bytes (%v), want %d\n%v", len(got), err, len(want), w)
	}
}

// want fails unless err is want, or wraps it, and the log is the text.
func (w *world) want(err, want error, log string) {
	w.t.Helper()
	if !errors.Is(err, want) {
		w.t.Errorf("error = %v, want %v", err, want)
	}
	if got := w.String(); got != log {
		w.t.Errorf("got  %s\nwant %s", got, log)
	}
}

// at writes an offset in units of 256 KiB, such as 2q+5.
func at(n int64) string {
	switch units, rest := n/q, n%q; {
	case units == 0:
		return fmt.Sprint(n)
	case rest > 0:
		return at(n-rest) + fmt.Sprintf("+%d", rest)
	case units == 1:
		return "q"
	default:
		return fmt.Sprintf("%dq", units)
	}
}

// String returns what happened, in the order in which it was reported. An exchange is its operation, the bytes that it
// sent, the status, the committed offset and the next step:
//
//	put 0-2q 308 2q send; wait 1s
func (w *world) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.log, "; ")
}

func (w *world) WantsExchange(context.Context) bool { return !w.unwanted }

func (w *world) Exchange(x *engine.Exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.exchanges = append(w.exchanges, x)
	text := string(x.Reply.Op)
	if x.Reply.Status == 0 { // the buffers of the connection have some of the bytes
		text += " lost"
	} else {
		if x.Sent > 0 {
			text += " " + at(x.Offset) + "-" + at(x.Offset+x.Sent)
		}
		text += fmt.Sprint(" ", x.Reply.Status)
		if held := x.Reply.Committed; x.Reply.Open() && held >= 0 {
			text += " " + at(held)
		}
	}
	if x.Next != nil {
		text += " " + string(x.Next.Step)
	}
	w.log = append(w.log, text)
}

func (w *world) Note(n engine.Note) {
	if n.Kind == engine.Waiting && w.onWait != nil {
		w.onWait()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, n)
	if n.Kind == engine.Waiting {
		w.log = append(w.log, "wait "+n.Delay.String())
	} else if n.Kind == engine.Restarted {
		w.log = append(w.log, "restarted")
	}
}

func (w *world) Flowing()   { w.flowing.Add(1) }
func (w *world) Committed() { w.committed.Add(1) }

// count returns the number of notes of a kind.
func (w *world) count(kind engine.NoteKind) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, note := range w.notes {
		if note.Kind == kind {
			n++
		}
	}
	return n
}
