package parts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload/internal/atrisk"
	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/source"
)

// TestUpload checks the requests of an upload in parts over one connection, in the order of the file, and what it reports.
func TestUpload(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		way
		requests string
	}{
		{byMultipart, "parts-put parts-put parts-put parts-list parts-complete get"},
		{byCompose, "start put finalize start put finalize start finalize compose delete delete delete"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{}, func(w *world) {
				u := w.begin(test.way)
				if count, done, sending := u.Progress(); count != 3 || done != 0 || sending != 0 || u.Started() != (test.Way == Multipart) {
					w.Errorf("at the beginning %d parts, %d done, %d sending, started %t", count, done, sending, u.Started())
				}
				w.succeed(u)
				if got := w.requests(); got != test.requests {
					w.Errorf("the requests are %s, want %s", got, test.requests)
				}
				size, sent, arrived, committed := u.Position()
				if count, done, sending := u.Progress(); count != 3 || done != 3 || sending != 0 || size != test.size || sent != size || arrived != size || committed != size || !u.Started() {
					w.Errorf("at the end %d parts, %d done, %d sending; %d, %d and %d bytes of %d", count, done, sending, sent, arrived, committed, size)
				}
				if resumed, retries, waited := u.Sums(); resumed != 0 || retries != 0 || waited != 0 || u.Uplink.Tally.Sent.Load() != test.size || u.Uplink.Tally.Resent.Load() != 0 {
					w.Errorf("resumed %d, %d retries, waited %v, sent %d", resumed, retries, waited, u.Uplink.Tally.Sent.Load())
				}
				if u.Used == nil || len(w.noted(engine.PartDone)) != 3 || len(w.noted(engine.Warning)) != 0 {
					w.Errorf("used %+v, %d parts are done, warnings %q", u.Used, len(w.noted(engine.PartDone)), w.noted(engine.Warning))
				}
			})
		})
	}
}

// TestConnections checks that the parts use as many connections as the options allow and there are parts, and that parts
// of a multipart upload begin only if all of their bytes may be at risk.
func TestConnections(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		way
		connections int
		auto        bool
		bound       *atrisk.Bound
		want        int
	}{
		{byMultipart, 2, false, nil, 2}, {byCompose, 2, false, nil, 2}, {byCompose, 9, false, nil, 3}, {byCompose, 0, false, nil, 1},
		{byCompose, 9, true, nil, 1}, // the tuner begins with one
		{byMultipart, 3, false, &atrisk.Bound{}, 3}, {byMultipart, 3, false, full(10 * mib), 2}, {byCompose, 3, false, full(10 * mib), 3},
	} {
		t.Run(fmt.Sprint(test.name, test.connections, test.auto, test.bound != nil), func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{NoMD5: true, Latency: 10 * time.Millisecond}, func(w *world) {
				u := w.begin(test.way)
				u.Options.Connections, u.Options.Auto, u.Uplink.AtRisk = test.connections, test.auto, test.bound
				most := 0
				w.before = func(*http.Request) {
					_, _, sending := u.Progress()
					most = max(most, sending)
				}
				w.succeed(u)
				if most != test.want {
					w.Errorf("%d connections, want %d", most, test.want)
				}
			})
		})
	}
}

// full returns a bound of 16 MiB of which another upload has n bytes at risk.
func full(n int64) *atrisk.Bound {
	b := &atrisk.Bound{}
	_ = b.Insert(n).Take(context.Background())
	return b
}

// TestFailureKeepsWhatIsStored checks what each step does if the service refuses its requests, or fails for so long that the
// retries are used up. The error has the kind and the committed offset. The service still has what it stored, and the
// next process sends only the rest.
func TestFailureKeepsWhatIsStored(t *testing.T) {
	t.Parallel()
	down, damage := status(503), faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}
	for _, test := range []struct {
		step    string
		way     way
		resumed bool // an earlier process has sent the first part
		small   bool // the parts do not fit in memory
		op      faults.Op
		from    int // number of the first request that fails
		do      faults.Action
		err     error
		done    int   // parts
		kept    int64 // bytes of the next part
		joining bool  // the object may have been made
	}{
		{step: "begin", way: byMultipart, resumed: true, op: faults.OpPartsList, from: 1, do: status(403), err: session.ErrPermission, done: 1},
		{step: "begin", way: byMultipart, resumed: true, op: faults.OpPartsList, from: 1, do: down, err: session.ErrRetriesExhausted, done: 1},
		{step: "send", way: byMultipart, op: faults.OpPartsPut, from: 2, do: status(403), err: session.ErrPermission, done: 1},
		{step: "send", way: byMultipart, op: faults.OpPartsPut, from: 2, do: down, err: session.ErrRetriesExhausted, done: 1},
		{step: "send", way: byMultipart, op: faults.OpPartsPut, from: 2, do: damage, err: session.ErrChecksum, done: 1},
		{step: "send", way: byMultipart, small: true, op: faults.OpPartsPut, from: 2, do: damage, err: session.ErrChecksum, done: 1},
		{step: "join", way: byMultipart, op: faults.OpPartsList, from: 1, do: status(403), err: session.ErrPermission, done: 3},
		{step: "join", way: byMultipart, op: faults.OpPartsComplete, from: 1, do: status(403), err: session.ErrPermission, done: 3},
		{step: "join", way: byMultipart, op: faults.OpPartsComplete, from: 1, do: down, err: session.ErrRetriesExhausted, done: 3, joining: true},

		{step: "send", way: byCompose, op: faults.OpStart, from: 2, do: status(403), err: session.ErrPermission, done: 1},
		{step: "send", way: byCompose, op: faults.OpPut, from: 2, do: down, err: session.ErrRetriesExhausted, done: 1},
		{step: "send", way: byCompose, op: faults.OpFinalize, from: 2, do: down, err: session.ErrRetriesExhausted, done: 1, kept: q},
		{step: "send", way: byCompose, op: faults.OpFinalize, from: 2, do: status(403), err: session.ErrPermission, done: 1, kept: q},
		{step: "send", way: byCompose, op: faults.OpPut, from: 2, do: faults.Action{Effect: faults.EffectNotFound}, err: session.ErrSessionLost, done: 1},
		{step: "resume", way: byCompose, resumed: true, op: faults.OpStart, from: 1, do: status(403), err: session.ErrPermission, done: 1},
		{step: "join", way: byCompose, op: faults.OpCompose, from: 1, do: status(403), err: session.ErrPermission, done: 3},
		{step: "join", way: byCompose, op: faults.OpCompose, from: 1, do: down, err: session.ErrRetriesExhausted, done: 3, joining: true},
	} {
		t.Run(fmt.Sprint(test.step, " ", test.way.name, " ", test.op, " ", test.err), func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
				if test.small {
					w.memory = 1
				}
				if test.do == damage || test.err == session.ErrSessionLost {
					w.tries = 9 // a part is sent three times
				}
				u := w.begin(test.way)
				if test.resumed {
					u = w.interrupt(u)
				}
				w.fault(test.op, test.from, -1, test.do)
				_, err := u.Send(w.Context())
				_, _, _, committed := u.Position()
				e, ok := errors.AsType[*session.Error](err)
				refused := test.do != down && test.op != faults.OpPartsList
				stored := min(int64(test.done)*u.common().Size, test.way.size) + test.kept
				if !errors.Is(err, test.err) || !ok || committed != stored || refused && (e.Offset != stored || test.step == "join" && !e.Open) || u.Journal.Finished() != test.done {
					w.Errorf("%d of %d bytes, error %v at %d, %d parts", committed, stored, err, e.Offset, u.Journal.Finished())
				}
				w.srv.ClearFaults()
				u = w.next(u)
				if p := w.token(); p.Joining != test.joining || p.Over {
					w.Errorf("the saved upload has joining %t, over %t", p.Joining, p.Over)
				}
				w.succeed(u)
				if resumed, _, _ := u.Sums(); resumed != stored || u.Uplink.Tally.Sent.Load() != test.way.size-stored {
					w.Errorf("resumed from %d, and sent %d of %d bytes; %d were stored", resumed, u.Uplink.Tally.Sent.Load(), test.way.size, stored)
				}
			})
		})
	}
}

// interrupt sends the first part, and returns the upload in the next process.
func (w *world) interrupt(u *Upload) *Upload {
	w.Helper()
	op := faults.OpStart
	if u.isMultipart() {
		op = faults.OpPartsPut
	}
	w.fault(op, 2, -1, status(403))
	if _, err := u.Send(w.Context()); !errors.Is(err, session.ErrPermission) || u.Journal.Finished() != 1 {
		w.Fatalf("%v, %d parts", err, u.Journal.Finished())
	}
	w.srv.ClearFaults()
	return w.next(u)
}

// TestFirstFailureEndsTheOthers checks that a part that fails interrupts the others, and that the error is its own.
func TestFirstFailureEndsTheOthers(t *testing.T) {
	t.Parallel()
	for _, by := range []way{byMultipart, byCompose} {
		t.Run(by.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, fakegcs.Options{NoMD5: true, Rate: 64 << 10}, func(w *world) {
				u := w.begin(by)
				u.Options.Connections = 3
				op := faults.OpStart
				if by.Way == Multipart {
					op = faults.OpPartsPut
				}
				w.fault(op, 3, 1, faults.Action{Effect: faults.EffectStatus, Status: 403, Early: true})
				began := time.Now()
				if _, err := u.Send(w.Context()); !errors.Is(err, session.ErrPermission) || time.Since(began) > 10*time.Second {
					w.Errorf("%v after %v", err, time.Since(began))
				}
				ctx, cancel := context.WithCancelCause(w.Context())
				cancel(context.Canceled)
				if _, err := u.Send(ctx); !errors.Is(err, context.Canceled) {
					w.Errorf("error %v of a call that is canceled before a part is sent", err)
				}
			})
		})
	}
}

// TestSourceIsCheckedBeforeTheJoin checks that no object is made if the caller expects other bytes or another size.
func TestSourceIsCheckedBeforeTheJoin(t *testing.T) {
	t.Parallel()
	for _, by := range []way{byMultipart, byCompose} {
		inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
			u := w.begin(by)
			refused := errors.New("refused")
			for _, expect := range []struct {
				to  func(*Upload)
				err error
			}{
				{func(u *Upload) { u.Expect.Size = new(by.size + 1) }, engine.ErrTruncated},
				{func(u *Upload) { u.Expect.Confirm = func(context.Context) error { return refused } }, refused},
				{func(u *Upload) { u.Wire.Spec.CRC32C = new(uint32) }, session.ErrChecksum},
			} {
				expect.to(u)
				if _, err := u.Send(w.Context()); !errors.Is(err, expect.err) || strings.Contains(w.stored(), "obj") {
					w.Errorf("error %v, the service has %s, want %v", err, w.stored(), expect.err)
				}
				u = w.next(u)
			}
			w.succeed(u)
		})
	}
}

// TestSentPartsRestoreTheRetries checks that failures of the whole upload before its parts are sent do not count after that. They
// count if all parts were sent by an earlier call.
func TestSentPartsRestoreTheRetries(t *testing.T) {
	t.Parallel()
	for by, ops := range map[way][2]faults.Op{byMultipart: {faults.OpPartsStart, faults.OpPartsComplete}, byCompose: {faults.OpGet, faults.OpCompose}} {
		inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
			for _, op := range ops {
				w.fault(op, 1, w.tries, status(503))
			}
			u := w.begin(by)
			w.succeed(u)
			if _, retries, waited := u.Sums(); retries != 0 || waited != 0 {
				t.Errorf("the parts had %d retries", retries)
			}
		})
	}
	inBubble(t, fakegcs.Options{NoMD5: true}, func(w *world) {
		w.fault(faults.OpPartsComplete, 1, 1, status(403))
		u := w.begin(byMultipart)
		_, _ = u.Send(w.Context())
		u = w.next(u)
		w.fault(faults.OpPartsList, 1, w.tries, status(503))
		w.fault(faults.OpPartsComplete, 1, 1, status(503))
		if _, err := u.Send(w.Context()); !errors.Is(err, session.ErrRetriesExhausted) || u.Journal.Finished() != 3 {
			t.Errorf("all parts were sent before: %v, %d parts", err, u.Journal.Finished())
		}
		w.succeed(u)
	})
}

// torn is a source that cannot be read from an offset.
type torn struct {
	content []byte
	from    int64
}

var errTorn = errors.New("cannot be read")

func (r *torn) ReadAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > r.from {
		return 0, errTorn
	}
	return copy(p, r.content[at:]), nil
}

// TestSourceFails checks that an error of the source ends the upload, and that what was stored before stays.
func TestSourceFails(t *testing.T) {
	t.Parallel()
	for _, by := range []way{byMultipart, byCompose} {
		for _, memory := range []int64{64 * mib, mib} {
			inBubble(t, fakegcs.Options{}, func(w *world) {
				w.memory = memory
				u := w.begin(by)
				file := &torn{w.content, u.common().Size + q}
				d := u.Division
				d.File = source.FromReaderAt(file, by.size, func(int64, int64, int64) {})
				u = NewUpload(d, true)
				if _, err := u.Send(w.Context()); !errors.Is(err, errTorn) || u.Journal.Finished() != 1 {
					t.Errorf("%v, %d parts", err, u.Journal.Finished())
				}
				if file.from = by.size - 1; by.Way == Multipart {
					w.putPart(u, 3, w.content[by.size-q:]) // its bytes must be compared
					if held, err := u.Committed(w.Context()); !errors.Is(err, errTorn) || held != (engine.Held{}) {
						t.Errorf("Committed = %+v, %v", held, err)
					}
					if _, err := u.Send(w.Context()); !errors.Is(err, errTorn) {
						t.Error(err)
					}
				}
				file.from = by.size
				w.succeed(u)
			})
		}
	}
}
