package engine_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/bucket"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// call is what an exchange does in place of a request of the client.
type call = func(context.Context, *session.Client) session.Reply

func reply(r session.Reply) call {
	return func(context.Context, *session.Client) session.Reply { return r }
}

// stat is an answer of the service.
var stat = session.Reply{Op: session.OpStat, Status: 200, FromService: true, Object: &session.Object{}}

// permit counts the requests under way. It allows none if denied is set.
type permit struct {
	engine.Permit
	denied         error
	current, begun int
}

func (p *permit) Begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	p.current++
	p.begun++
	return ctx, func() { p.current-- }, p.denied
}

// attempts returns the number of requests since the last progress.
func attempts(x *engine.Requester) int {
	return x.Retry.Failure(&session.Error{}, nil).(*session.Error).Attempts
}

// TestEveryExchangeCounts checks that exchanges are counted, that each has a permit, and that the service counts as reached for
// those after the first answer.
func TestEveryExchangeCounts(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		p := &permit{}
		w.uplink.Permit = p
		x := w.requester(spec)
		for i, r := range []session.Reply{{Op: session.OpStat, Status: 503}, {Op: session.OpStat, Err: io.EOF}, stat, stat} {
			got := x.Plain(w.t.Context(), session.OpStat, func(context.Context, *session.Client) session.Reply {
				if p.current != 1 {
					t.Errorf("%d requests have a permit", p.current)
				}
				return r
			})
			if got.Reached != (i > 2) || p.current != 0 || attempts(x) != i+1 {
				t.Errorf("reply %d: reached %v, %d permits are kept, %d attempts", i, got.Reached, p.current, attempts(x))
			}
		}
		if n := w.uplink.Tally.Requests.Load(); n != 4 {
			t.Errorf("counted %d requests of 4", n)
		}
		if x.Progressed(); attempts(x) != 0 {
			t.Errorf("%d attempts since the progress", attempts(x))
		}
		p.denied = io.ErrClosedPipe
		r := x.Plain(w.t.Context(), session.OpStat, func(context.Context, *session.Client) session.Reply {
			t.Error("a request was made without a permit")
			return session.Reply{}
		})
		if r.Err != io.ErrClosedPipe || !r.Unsent || r.Op != session.OpStat || r.Committed != -1 || !r.Reached || attempts(x) != 0 {
			t.Errorf("%+v after %d attempts", r, attempts(x))
		}
	})
}

// expiring is a permit whose requests end with a cause when expire is called.
type expiring struct {
	engine.Permit
	expire context.CancelCauseFunc
}

func (p *expiring) Begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	ctx, p.expire = context.WithCancelCause(ctx)
	return ctx, func() { p.expire(nil) }, nil
}

// TestExpiredPermit checks that the first request, whose permit expires before the reply, is made again. If the caller
// ends it, the service was not reached.
func TestExpiredPermit(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		p := &expiring{}
		w.uplink.Permit = p
		expired := errors.New("the lease expired")
		ctx, interrupt := context.WithCancelCause(w.t.Context())
		for _, end := range []context.CancelCauseFunc{func(cause error) { p.expire(cause) }, interrupt} {
			r := w.requester(spec).Plain(ctx, session.OpStart, func(ctx context.Context, _ *session.Client) session.Reply {
				end(expired)
				return session.Reply{Op: session.OpStart, Err: context.Cause(ctx)}
			})
			if again := ctx.Err() == nil; r.Err != expired || r.Reached != again || r.Retryable() != again {
				t.Errorf("%+v, retried: %v, want %v", r, r.Retryable(), again)
			}
		}
	})
}

// TestRateBeforePermit checks that an exchange which changes an object waits for the rate of its bucket before it needs its
// permit, that one without a permit does not delay the next one, and that other exchanges do not wait.
func TestRateBeforePermit(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		p, x := &permit{denied: io.ErrClosedPipe}, w.requester(spec)
		rate := new(backoff.Rate)
		rate.Set(1)
		w.uplink.Permit, w.uplink.Rate = p, func(bucket string) *backoff.Rate {
			if bucket != "bkt" {
				t.Errorf("rate of %q", bucket)
			}
			return rate
		}
		insert := func(ctx context.Context, code int) session.Reply {
			return x.Plain(ctx, session.OpInsert, reply(session.Reply{Op: session.OpInsert, Status: code, FromService: true}))
		}
		start := time.Now()
		for range 100 {
			if r := insert(w.t.Context(), 200); r.Err != io.ErrClosedPipe || !r.Unsent {
				t.Errorf("reply %+v without a permit", r)
			}
		}
		p.denied = nil
		if insert(w.t.Context(), 200); time.Since(start) > 3*time.Second {
			t.Errorf("100 requests that were not made delay the next one by %v", time.Since(start))
		}
		ctx, cancel := context.WithTimeoutCause(w.t.Context(), time.Millisecond, io.ErrNoProgress)
		defer cancel()
		began := p.begun
		if r := insert(ctx, 200); r.Err != io.ErrNoProgress || !r.Unsent || p.begun != began {
			t.Errorf("%+v; %d permits for a request that waits for the rate", r, p.begun-began)
		}
		for range 100 {
			x.Plain(w.t.Context(), session.OpQuery, reply(stat))
		}
		if took, paced := time.Since(start), time.Duration(w.uplink.Tally.Paced.Load()); took > 4*time.Second || paced != took {
			t.Errorf("took %v, %v of them for the rate", took, paced)
		}
		if insert(w.t.Context(), 429); rate.LastRefused().IsZero() || w.count(engine.Warning) > 0 {
			t.Error("a 429 does not change the rate, or there is a warning although requests were paced before")
		}
	})
}

// TestRetriesAreNotBehindNewRequests checks that a request after a failure waits for the rate of its bucket before those that were not
// made yet.
func TestRetriesAreNotBehindNewRequests(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		rate := new(backoff.Rate)
		rate.Set(1)
		w.uplink.Rate = func(string) *backoff.Rate { return rate }
		var made []string
		insert := func(x *engine.Requester, name string) {
			x.Plain(w.t.Context(), session.OpInsert, func(context.Context, *session.Client) session.Reply {
				made = append(made, name)
				return session.Reply{Op: session.OpInsert, Status: 200}
			})
		}
		retry := w.requester(spec)
		failed := unavailable
		_ = retry.Retry.Wait(w.t.Context(), &failed, 0)
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() { insert(w.requester(spec), "new") })
		}
		synctest.Wait()
		group.Go(func() { insert(retry, "retry") })
		group.Wait()
		if at := slices.Index(made, "retry"); at > 5 {
			t.Errorf("the retry was request %d of %d", at+1, len(made))
		}
	})
}

// TestFirst429IsAWarning checks that only the first 429 of a bucket, to a change, begins to pace its requests, and is reported, and that a rate which
// determines the next request does not open the breaker.
func TestFirst429IsAWarning(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		rate, breaker := new(backoff.Rate), &backoff.Breaker{Threshold: 2}
		w.uplink.Rate, w.uplink.Breaker = func(string) *backoff.Rate { return rate }, breaker
		refused := session.Reply{Op: session.OpInsert, Status: 429, FromService: true}
		xs := []*engine.Requester{w.requester(spec), w.requester(spec)}
		object := session.Reply{Op: session.OpInsert, Status: 429, FromService: true, Message: "The object bkt/obj exceeded the rate limit for object mutation operations"}
		for i, r := range []session.Reply{{Op: session.OpInsert, Status: 503}, {Op: session.OpInsert, Status: 200, FromService: true}, {Op: session.OpInsert, Err: io.EOF}, object, refused, refused} {
			x := xs[i%2]
			x.Plain(w.t.Context(), session.OpQuery, reply(refused)) // a read
			if x.Plain(w.t.Context(), session.OpInsert, reply(r)); i >= 4 {
				_ = x.Retry.Wait(w.t.Context(), &session.Error{Status: 429}, 0)
			}
			if warned := w.count(engine.Warning); (warned == 1) != (i >= 4) || (rate.PerSecond() > 0) != (i >= 4) {
				t.Errorf("after reply %d: %d warnings, %v per second", i, warned, rate.PerSecond())
			}
		}
		if breaker.Open() {
			t.Error("429s of a bucket whose requests are throttled open the breaker")
		}
		const want = "the bucket bkt refuses requests because there are too many: from now on at most 100 per second are made, and more as they are accepted"
		if i := slices.IndexFunc(w.notes, func(n engine.Note) bool { return n.Kind == engine.Warning }); i < 0 || w.notes[i].Cause != want {
			t.Errorf("notes %+v", w.notes)
		}
	})
}

// place counts what the place of an upload in a batch is told.
type place struct {
	sent    int
	refused int
}

func (p *place) Sent(n int) { p.sent += n }
func (p *place) Refused()   { p.refused++ }

// TestRepliesAreReported checks which replies the place in a batch gets as a refusal, and which count as the time of a reply.
func TestRepliesAreReported(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		r       session.Reply
		body    io.Reader
		refused int
		replied bool
	}{
		{"answered", stat, nil, 0, true},
		{"absent", session.Reply{Op: session.OpStat, Status: 404, FromService: true}, nil, 0, true},
		{"answered, with data", stat, strings.NewReader("x"), 0, false},
		{"lost", session.Reply{Op: session.OpStat, Err: io.EOF}, nil, 0, false},
		{"forbidden", session.Reply{Op: session.OpStat, Status: 403, FromService: true}, nil, 0, false},
		{"too many", session.Reply{Op: session.OpStat, Status: 429, FromService: true}, nil, 1, false},
		{"unavailable", session.Reply{Op: session.OpStat, Status: 503, FromService: true}, nil, 1, false},
	} {
		inBubble(t, fakegcs.Options{}, func(w *world) {
			p, replied := &place{}, time.Duration(-1)
			w.uplink.Place, w.uplink.Replied = p, func(d time.Duration) { replied = d }
			w.requester(spec).Send(w.t.Context(), session.OpStat, 0, tt.body, func(context.Context, *session.Client, io.Reader) session.Reply {
				time.Sleep(time.Second)
				return tt.r
			})
			if p.refused != tt.refused || (replied == time.Second) != tt.replied {
				t.Errorf("%s: %d refusals, replied after %v", tt.name, p.refused, replied)
			}
		})
	}
}

// TestStalledExchange checks that a request without bytes ends after the stall timeout, that bytes give it more time, and that the
// service has ten minutes to make an object of many.
func TestStalledExchange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		op      session.Op
		timeout time.Duration
		body    int // bytes at a rate of 1 KiB/s
		want    time.Duration
	}{
		{session.OpPut, time.Minute, 30 << 10, time.Minute},
		{session.OpQuery, time.Minute, 0, time.Minute},
		{bucket.OpCompose, time.Minute, 0, 10 * time.Minute},
		{multipart.OpComplete, time.Minute, 0, 10 * time.Minute},
		{multipart.OpComplete, 20 * time.Minute, 0, 20 * time.Minute},
		{multipart.OpComplete, 0, 0, time.Hour},
		{session.OpQuery, -1, 0, time.Hour},
	} {
		inBubble(t, fakegcs.Options{}, func(w *world) {
			w.uplink.StallTimeout, w.uplink.StallRate = tt.timeout, 1<<10
			ctx, cancel := context.WithTimeoutCause(w.t.Context(), time.Hour, io.ErrNoProgress)
			defer cancel()
			start := time.Now()
			r := w.requester(spec).Send(ctx, tt.op, 0, bytes.NewReader(make([]byte, tt.body)), func(ctx context.Context, _ *session.Client, body io.Reader) session.Reply {
				_, _ = io.Copy(io.Discard, body)
				<-ctx.Done()
				return session.Reply{Err: context.Cause(ctx)}
			})
			want := session.ErrStalled
			if tt.want == time.Hour {
				want = io.ErrNoProgress
			}
			if took := time.Since(start); r.Err != want || took != tt.want {
				t.Errorf("%s, %v: ended after %v: %v", tt.op, tt.timeout, took, r.Err)
			}
		})
	}
}

// TestStaleConnectionIsNotReused checks that after a request failed on a reused connection, each has its own until the next progress.
func TestStaleConnectionIsNotReused(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		x, uri := w.requester(spec), w.session(nil)
		for i, step := range []struct {
			before func()
			dials  int64 // of two requests
		}{
			{func() {}, 0},
			{func() { x.Plain(w.t.Context(), session.OpQuery, reply(session.Reply{Reused: true, Status: 503})) }, 0},
			{func() { x.Plain(w.t.Context(), session.OpQuery, reply(session.Reply{Err: io.EOF})) }, 0},
			{func() { x.Plain(w.t.Context(), session.OpQuery, reply(session.Reply{Err: io.EOF, Reused: true})) }, 2},
			{func() { x.Retry.Progressed() }, 2},
			{x.Progressed, 1},
		} {
			step.before()
			before := w.dials.Load()
			for range 2 {
				x.Query(w.t.Context(), uri)
			}
			if n := w.dials.Load() - before; n != step.dials {
				t.Errorf("step %d: %d connections for two requests, want %d", i, n, step.dials)
			}
		}
	})
}

// TestRepeatedRequestsHaveOneToken checks that a request has the same idempotency token until it succeeds.
func TestRepeatedRequestsHaveOneToken(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{Faults: on(faults.OpStart, status(503), effect(faults.EffectReset))}, func(w *world) {
		x, other := w.requester(spec), w.requester(spec)
		var tokens []string
		for _, x := range []*engine.Requester{x, x, x, x, other} { // the first two fail
			x.Plain(w.t.Context(), session.OpStart, func(ctx context.Context, c *session.Client) session.Reply { return c.Start(ctx, spec, 1) })
			x.Stat(w.t.Context()) // does not end the intention
		}
		for _, r := range w.srv.Requests() {
			if r.Op == faults.OpStart {
				tokens = append(tokens, r.IdempotencyToken)
			}
		}
		if len(tokens) != 5 || tokens[0] == "" || tokens[0] != tokens[1] || tokens[1] != tokens[2] || tokens[2] == tokens[3] || tokens[3] == tokens[4] {
			t.Errorf("tokens %q, want the first three to be the same", tokens)
		}
	})
}

// TestHandedCountsWhatIsSentAgain checks the bytes that count as sent again.
func TestHandedCountsWhatIsSentAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		x := w.requester(spec)
		for _, s := range []struct{ from, to, again int64 }{{0, 10, 0}, {10, 20, 0}, {5, 15, 10}, {15, 30, 5}, {30, 30, 0}, {40, 50, 0}, {0, 60, 50}} {
			before := w.uplink.Tally.Resent.Load()
			x.Handed(s.from, s.to)
			if again := w.uplink.Tally.Resent.Load() - before; again != s.again || x.Pos.Sent.Load() != s.to {
				t.Errorf("from %d to %d: %d bytes again, want %d; sent %d", s.from, s.to, again, s.again, x.Pos.Sent.Load())
			}
		}
	})
}

// TestDropIsBounded checks how long an upload waits for the cancellation of a session that is no longer needed.
func TestDropIsBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		canceled bool
		stalled  bool
		min, max time.Duration
	}{
		{"answered", false, false, 0, 0},
		{"answered, and canceled", true, false, 0, 0},
		{"no answer", false, true, 10 * time.Second, 10 * time.Second},
		{"no answer, and canceled", true, true, time.Second, 2 * time.Second},
	} {
		inBubble(t, fakegcs.Options{}, func(w *world) {
			if tt.stalled {
				w.add(on(faults.OpCancel, effect(faults.EffectStall))...)
			}
			x, uri := w.requester(spec), w.session(nil)
			ctx, cancel := context.WithCancel(w.t.Context())
			defer cancel()
			if tt.canceled {
				cancel()
			}
			began := time.Now()
			x.Drop(ctx, session.URI{})
			x.Drop(ctx, uri)
			if took := time.Since(began); took < tt.min || took > tt.max || w.uplink.Tally.Requests.Load() != 1 {
				t.Errorf("%s: took %v, %d requests", tt.name, took, w.uplink.Tally.Requests.Load())
			}
			if r := x.Query(w.t.Context(), uri); (r.Status == 499) != !tt.stalled {
				t.Errorf("%s: then %d", tt.name, r.Status)
			}
		})
	}
}
