package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/decide"
	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// TestAsk checks the outcome of one request that is repeated until it is known, and its error.
func TestAsk(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		exists  bool
		faults  []faults.Fault
		request decide.Request
		timeout time.Duration
		step    session.Step
		err     error
		refused bool
		text    string // the beginning of the error
		log     string
	}{
		{name: "done", exists: true, step: session.Done, log: "stat 200 done"},
		{name: "absent", step: decide.Absent, log: "stat 404 absent"},
		{name: "absent, which must be confirmed", request: decide.Request{Known: true}, step: decide.Absent, log: "stat 404 repeat; wait 1s; stat 404 absent"},
		{name: "done after two failures", exists: true, faults: on(faults.OpGet, status(503), status(500)), step: session.Done,
			log: "stat 503 repeat; wait 1s; stat 500 repeat; wait 2s; stat 200 done"},
		{name: "Retry-After", exists: true, faults: on(faults.OpGet, faults.Action{Effect: faults.EffectStatus, Status: 503, RetryAfter: "20"}), step: session.Done,
			log: "stat 503 repeat; wait 20s; stat 200 done"},
		{name: "refused", faults: on(faults.OpGet, status(403)), step: session.Fail, err: session.ErrPermission, refused: true, text: "stat: permission denied: 403 Forbidden",
			log: "stat 403 fail"},
		{name: "a permanent failure", faults: on(faults.OpGet, status(502)), step: decide.Repeat, err: backoff.ErrPermanent, text: "stat: ", log: "stat 502 repeat"},
		{name: "exhausted", faults: always(faults.OpGet, status(503)), step: decide.Repeat, err: session.ErrRetriesExhausted, text: "stat: retries exhausted: 503 Service Unavailable",
			log: "stat 503 repeat; wait 1s; stat 503 repeat; wait 2s; stat 503 repeat"},
		{name: "interrupted at once", timeout: -1, step: decide.Repeat, err: context.DeadlineExceeded, text: "context deadline exceeded: enough"},
		{name: "interrupted in a wait", faults: always(faults.OpGet, status(503)), timeout: 2 * time.Second, step: decide.Repeat, err: context.DeadlineExceeded,
			text: "context deadline exceeded: enough (before that: 503 Service Unavailable", log: "stat 503 repeat; wait 1s; stat 503 repeat; wait 2s"},
		{name: "interrupted in a request", faults: on(faults.OpGet, status(503), effect(faults.EffectStall)), timeout: 2 * time.Second, step: decide.Repeat, err: context.DeadlineExceeded,
			text: "context deadline exceeded: enough", log: "stat 503 repeat; wait 1s; stat lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakegcs.Options{}, func(w *world) {
				if tt.exists {
					w.insert(data(5))
				}
				w.add(tt.faults...)
				w.uplink.Budget = engine.NewSharedBudget(engine.RetryRule{Retries: 2, Permanent: func(e *session.Error) bool { return e.Status == 502 }})
				ctx := w.t.Context()
				if tt.timeout != 0 {
					var cancel func()
					ctx, cancel = context.WithTimeoutCause(ctx, tt.timeout, errors.New("enough"))
					defer cancel()
				}
				x := w.requester(spec)
				a, err := x.Ask(ctx, tt.request, x.Stat)
				w.want(err, tt.err, tt.log)
				if a.Step != tt.step || engine.Refusal(err) != tt.refused || (a.Object != nil) != (tt.step == session.Done) || err != nil && !strings.HasPrefix(err.Error(), tt.text) {
					t.Errorf("%v, %v; refused: %v", a, err, engine.Refusal(err))
				}
				if _, interrupted := err.(*engine.Interruption); interrupted != (tt.timeout != 0) {
					t.Errorf("error %T", err)
				}
			})
		})
	}
}

// TestAnswerCountsAlthoughInterrupted checks that an answer which arrives with the end of the context ends the conversation, and that
// no other reply does.
func TestAnswerCountsAlthoughInterrupted(t *testing.T) {
	t.Parallel()
	for _, r := range []session.Reply{stat, {Op: session.OpStat, Status: 503}, {}} {
		inBubble(t, fakegcs.Options{}, func(w *world) {
			ctx, cancel := context.WithCancelCause(w.t.Context())
			a, err := w.requester(spec).Ask(ctx, decide.Request{}, func(context.Context) session.Reply {
				cancel(errors.New("enough"))
				return r
			})
			if r.Object != nil && (a.Step != session.Done || err != nil) || r.Object == nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%+v: %v, %v", r, a, err)
			}
			if r.Object == nil && strings.Contains(err.Error(), "before that") {
				t.Errorf("%+v: %v", r, err)
			}
		})
	}
}

// local is a conversation that fails for a local reason.
type local struct {
	engine.Conversation
	performed, handled error
}

func (l local) Perform(context.Context, session.Action) (session.Reply, error) {
	return stat, l.performed
}
func (l local) HandleReply(context.Context, session.Reply) (session.Action, error) {
	return session.Action{Step: session.Done}, l.handled
}

// TestLocalErrorEndsAConversation checks that the error of a source or a store is returned as it is.
func TestLocalErrorEndsAConversation(t *testing.T) {
	t.Parallel()
	full := errors.New("the disk is full")
	for _, c := range []local{{performed: full}, {handled: full}} {
		inBubble(t, fakegcs.Options{}, func(w *world) {
			if _, err := w.requester(spec).Converse(w.t.Context(), c, session.Action{Step: session.Begin}); err != full {
				t.Errorf("%+v: error = %v", c, err)
			}
		})
	}
}

// TestExchangesAreDescribed checks what the description of an exchange has, and that it is in the context of the request.
func TestExchangesAreDescribed(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{NoMD5: true, Latency: time.Second, Faults: on(faults.OpFinalize, status(503))}, func(w *world) {
		began := time.Now()
		r := w.run(spec, file(data(2*q+5)), engine.TransferOptions{})
		x := r.Wire
		if _, err := r.Drive(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, want := range []engine.Exchange{
			{Attempt: 1, Began: began, Offset: 0, Sent: 0},
			{Attempt: 2, Began: began.Add(1 * time.Second), Offset: 0, Sent: 2 * q},
			{Attempt: 1, Began: began.Add(2 * time.Second), Offset: 2 * q, Sent: 5}, // progress
			{Attempt: 2, Began: began.Add(4 * time.Second), Offset: 2 * q, Sent: 0}, // after a wait
			{Attempt: 3, Began: began.Add(5 * time.Second), Offset: 2 * q, Sent: 5},
		} {
			x := w.exchanges[i]
			if x.Attempt != want.Attempt || !x.Began.Equal(want.Began) || x.Took != time.Second || x.Offset != want.Offset || x.Sent != want.Sent || x.Next == nil || x.Context.Value(engine.ExchangeKey{}) != x {
				t.Errorf("exchange %d is %+v, want %+v", i, x, want)
			}
		}
		if n := len(w.exchanges); n != 5 {
			t.Errorf("%d exchanges are described", n)
		}
		described := w.exchanges[2].Next.Err
		if described == nil || described.Attempts != 1 { // it is a copy
			t.Errorf("the decision after the failure: %+v", described)
		}
		w.unwanted = true
		if x.Stat(w.t.Context()); len(w.exchanges) != 5 {
			t.Error("an unwanted exchange is described")
		}
		w.unwanted = false
		if x.Stat(w.t.Context()); len(w.exchanges) != 6 || w.exchanges[5].Next != nil {
			t.Error("an exchange outside of a conversation is not described, or has a decision")
		}
	})
}
