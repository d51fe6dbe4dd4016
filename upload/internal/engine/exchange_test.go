package engine

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/session"
)

// unnoted are notes that nobody reads.
type unnoted struct{ Notes }

func (unnoted) WantsExchange(context.Context) bool { return false }

// lentPermit is a permit that counts the requests under way. It allows none if denied is set.
type lentPermit struct {
	Permit
	denied  error
	current int
	begun   int
}

func (p *lentPermit) Begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	p.current++
	p.begun++
	return ctx, func() { p.current-- }, p.denied
}

// newTestRequester returns a requester whose requests need p.
func newTestRequester(p Permit) *Requester {
	return NewRequester(&Uplink{
		Client: new(session.Client),
		Budget: &Budget{}, Gate: backoff.NoGate, StallTimeout: time.Minute, StallRate: 1 << 10, Notes: unnoted{}, Tally: &Tally{}, Permit: p,
	}, 0, NewPosition(-1))
}

// TestEveryExchangeCounts checks that exchanges are counted, and that the service counts as
// reached for those after the first answer.
func TestEveryExchangeCounts(t *testing.T) {
	p := &lentPermit{}
	q := newTestRequester(p)
	for i := range 3 {
		r := q.exchange(t.Context(), exchange{call: func(context.Context, *session.Client, io.Reader) session.Reply {
			if p.current != 1 {
				t.Errorf("%d requests have a permit", p.current)
			}
			return session.Reply{Op: session.OpStat, Status: 200, Object: &session.Object{}}
		}})
		if r.Reached != (i > 0) || p.current != 0 {
			t.Errorf("reply %d: reached %v, and %d permits are kept", i, r.Reached, p.current)
		}
	}
	if n := q.uplink.Tally.Requests.Load(); n != 3 || q.Retry.attempts != 3 {
		t.Errorf("counted %d requests and %d attempts of 3", n, q.Retry.attempts)
	}
}

// TestNoExchangeWithoutPermit checks that a request is not made, and not counted, without a
// permit.
func TestNoExchangeWithoutPermit(t *testing.T) {
	q := newTestRequester(&lentPermit{denied: io.ErrClosedPipe})
	r := q.exchange(t.Context(), exchange{call: func(context.Context, *session.Client, io.Reader) session.Reply {
		t.Error("the request was made")
		return session.Reply{}
	}})
	if r.Err != io.ErrClosedPipe || !r.Unsent || q.Retry.attempts != 0 {
		t.Errorf("%+v after %d attempts", r, q.Retry.attempts)
	}
}

// TestRateBeforePermit checks that an exchange waits for the rate of its bucket before it needs its permit,
// and that one without a permit does not delay the next one.
func TestRateBeforePermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &lentPermit{denied: io.ErrClosedPipe}
		q := newTestRequester(p).To(session.Spec{Bucket: "bkt"})
		var rate backoff.Rate
		rate.Set(1)
		q.uplink.Rate = func(bucket string) *backoff.Rate {
			if bucket != "bkt" {
				t.Errorf("rate of %q", bucket)
			}
			return &rate
		}
		x := exchange{op: session.OpInsert, call: func(context.Context, *session.Client, io.Reader) session.Reply {
			return session.Reply{Op: session.OpInsert, Status: 429}
		}}
		start := time.Now()
		for range 100 {
			if r := q.exchange(t.Context(), x); r.Err != io.ErrClosedPipe || !r.Unsent {
				t.Errorf("reply %+v without a permit", r)
			}
		}
		p.denied = nil
		if q.exchange(t.Context(), x); time.Since(start) > 3*time.Second {
			t.Errorf("100 requests that were not made delay the next one by %v", time.Since(start))
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, io.ErrNoProgress)
		defer cancel()
		began := p.begun
		if r := q.exchange(ctx, x); r.Err != io.ErrNoProgress || !r.Unsent || p.begun != began || q.Retry.attempts != 1 {
			t.Errorf("%+v after %d attempts; %d permits for a request that waits for the rate", r, q.Retry.attempts, p.begun-began)
		}
		if rate.LastRefused().IsZero() {
			t.Error("a 429 does not change the rate")
		}
	})
}

// TestStallEndsTheExchange checks that the request gets the watched body, and that it ends with
// ErrStalled when no bytes flow.
func TestStallEndsTheExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTestRequester(nil)
		start := time.Now()
		r := q.exchange(t.Context(), exchange{body: bytes.NewReader(make([]byte, 30<<10)), call: func(ctx context.Context, _ *session.Client, body io.Reader) session.Reply {
			if _, err := io.Copy(io.Discard, body); err != nil { // worth 30 s
				return session.Reply{Err: err}
			}
			<-ctx.Done()
			return session.Reply{Err: context.Cause(ctx)}
		}})
		if took := time.Since(start); r.Err != session.ErrStalled || took != time.Minute {
			t.Errorf("ended after %v: %v", took, r.Err)
		}
	})
}
