package engine_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// unavailable is a failure after which an upload waits.
var unavailable = session.Error{Op: session.OpPut, Status: 503}

// exhaust waits until the budget of x is spent, and returns the error.
func (w *world) exhaust(x *engine.Requester) *session.Error {
	w.t.Helper()
	for {
		failed := unavailable
		err := x.Retry.Wait(w.t.Context(), &failed, 0)
		if e, ok := errors.AsType[*session.Error](err); ok {
			return e
		}
		require.NoError(w.t, err)
	}
}

// TestRetriesEndWithTheBudget checks how many waits each rule allows, that each is reported, and that the error has their history.
func TestRetriesEndWithTheBudget(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	for _, tt := range []struct {
		name    string
		rule    engine.RetryRule
		stake   int64 // of this upload
		counted int64 // of its batch
		retries int
		waited  time.Duration // 0 if it is not checked
	}{
		{"the default", engine.RetryRule{}, 0, 0, 5, 31 * time.Second},
		{"none", engine.RetryRule{Retries: -1}, gib, 0, 0, 0},
		{"two", engine.RetryRule{Retries: 2}, gib, 0, 2, 3 * time.Second},
		{"a time", engine.RetryRule{Time: 20 * time.Second}, 0, 0, 4, 15 * time.Second},
		{"more bytes", engine.RetryRule{}, gib, 0, 25, 0},
		{"more bytes in the batch", engine.RetryRule{}, 1, gib, 25, 0},
	} {
		inBubble(t, fakegcs.Options{}, func(w *world) {
			w.uplink.Budget = engine.NewSharedBudget(tt.rule)
			w.uplink.Budget.Counted.Store(tt.counted)
			x := w.requester(spec)
			x.Retry.Stake(tt.stake)
			time.Sleep(time.Hour) // does not count
			began := time.Now()
			x.Plain(w.t.Context(), session.OpPut, reply(session.Reply{}))
			e := w.exhaust(x)
			if e.Kind != session.ErrRetriesExhausted || e.Status != 503 || e.Attempts != 1 || len(e.Waits) != tt.retries || x.Retry.Retries != tt.retries || !e.Since.Equal(began) {
				t.Errorf("%s: %v after %d retries, failing since %v: %+v", tt.name, e, x.Retry.Retries, e.Since.Sub(began), e)
			}
			if waited := x.Retry.Waited(); waited != time.Since(began) || tt.waited > 0 && waited != tt.waited {
				t.Errorf("%s: waited %v, want %v", tt.name, waited, tt.waited)
			}
			for i, n := range w.notes {
				if want := min(time.Second<<i, 32*time.Second); n.Kind != engine.Waiting || n.Delay != want || n.Retry != i+1 || n.Blocked || n.Cause != "503" || n.Err.Error() != unavailable.Error() || e.Waits[i] != (session.Wait{Delay: want, Cause: "503"}) {
					t.Errorf("%s: note %d is %+v", tt.name, i, n)
				}
			}
			if len(w.notes) != tt.retries {
				t.Errorf("%s: %d waits were reported", tt.name, len(w.notes))
			}
			x.Progressed() // restores all of it
			if e := w.exhaust(x); e.Attempts != 0 || len(e.Waits) != tt.retries || !e.Since.After(began.Add(tt.waited-1)) {
				t.Errorf("%s: %d retries after progress: %+v", tt.name, len(e.Waits), e)
			}
		})
	}
}

// TestBudgetGrowsWhileItWaits checks that the bytes which a batch finds during a wait give its uploads more retries.
func TestBudgetGrowsWhileItWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		x := w.requester(spec)
		time.AfterFunc(30*time.Second, func() { w.uplink.Budget.Counted.Store(1 << 30) })
		if e := w.exhaust(x); len(e.Waits) != 25 {
			t.Errorf("%d retries, want those of 1 GiB", len(e.Waits))
		}
	})
}

// TestStakeOnlyGrows checks that the bytes at stake are those of all uploads, each with its greatest number.
func TestStakeOnlyGrows(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		a, b := w.requester(spec).Retry, w.requester(spec).Retry
		for i, s := range []struct {
			r       *engine.Retry
			n, want int64
		}{{a, 5, 5}, {a, 3, 5}, {b, 4, 9}, {a, 6, 10}, {b, 4, 10}} {
			if s.r.Stake(s.n); w.uplink.Budget.AtStake() != s.want {
				t.Errorf("step %d: %d bytes at stake, want %d", i, w.uplink.Budget.AtStake(), s.want)
			}
		}
		if w.uplink.Budget.Counted.Store(11); w.uplink.Budget.AtStake() != 11 {
			t.Error("the bytes of the batch do not count")
		}
	})
}

// TestBudgetKnowsTheLastProgress checks that the time of the last progress is zero before the first one, even if that is at once.
func TestBudgetKnowsTheLastProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, began := engine.NewSharedBudget(engine.RetryRule{}), time.Now()
		if !b.Progress().IsZero() {
			t.Errorf("progress at %v", b.Progress())
		}
		for _, d := range []time.Duration{1, time.Minute} {
			b.Progressed()
			if at := b.Progress().Sub(began); at != d {
				t.Errorf("progress after %v, want %v", at, d)
			}
			time.Sleep(time.Minute)
		}
	})
}

// TestWaitsThatDoNotRetry checks the ends of a wait other than a retry: the caller's decision, and the context.
func TestWaitsThatDoNotRetry(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		w.uplink.Budget = engine.NewSharedBudget(engine.RetryRule{Permanent: func(e *session.Error) bool {
			e.Offset = 7 // it is a copy
			return e.Status == 500 && e.Attempts == 1 && len(e.Waits) == 1
		}})
		x := w.requester(spec)
		x.Plain(w.t.Context(), session.OpPut, reply(session.Reply{}))
		began := time.Now()
		if err := x.Retry.Wait(w.t.Context(), &session.Error{Status: 500}, 50*time.Second); err != nil || time.Since(began) != 50*time.Second {
			t.Errorf("%v after %v, want the wait that the service requests", err, time.Since(began))
		}
		failed := session.Error{Status: 500, Err: io.EOF}
		err := x.Retry.Wait(w.t.Context(), &failed, 0)
		if e, ok := errors.AsType[*session.Error](err); !ok || e.Kind != backoff.ErrPermanent || e.Err != io.EOF || e.Attempts != 1 || len(e.Waits) != 1 || failed.Offset != 0 || time.Since(began) != 50*time.Second {
			t.Errorf("the caller's decision: %v, %+v", err, failed)
		}
	})
}

// TestFailureHasTheHistory checks which error gets a further kind.
func TestFailureHasTheHistory(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		x := w.requester(spec)
		for _, tt := range []struct{ kind, more, wantKind, wantErr error }{
			{nil, nil, nil, io.EOF},
			{nil, session.ErrStalled, session.ErrStalled, io.EOF},
			{session.ErrNotFound, nil, session.ErrNotFound, io.EOF},
			{session.ErrNotFound, session.ErrStalled, session.ErrNotFound, session.ErrStalled},
		} {
			e := x.Retry.Failure(&session.Error{Kind: tt.kind, Err: io.EOF}, tt.more).(*session.Error)
			if e.Kind != tt.wantKind || e.Err != tt.wantErr {
				t.Errorf("%v and %v: kind %v, cause %v", tt.kind, tt.more, e.Kind, e.Err)
			}
		}
	})
}

// TestBreakerBlocksUploads checks that a wait for the breaker is reported, and that what concerns only one upload neither opens it nor
// waits at it.
func TestBreakerBlocksUploads(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		held := 0
		w.uplink.Breaker, w.uplink.Budget.Blocked = &backoff.Breaker{Threshold: 2}, func() { held++ }
		a, b, c := w.requester(spec).Retry, w.requester(spec).Retry, w.requester(spec).Retry
		lost := session.Error{Op: session.OpQuery, Status: 404, FromService: true}
		for range 2 {
			if err := errors.Join(a.Wait(w.t.Context(), &lost, 0), b.Wait(w.t.Context(), &lost, 0)); err != nil || w.uplink.Breaker.Open() {
				t.Errorf("lost sessions: %v, breaker open: %v", err, w.uplink.Breaker.Open())
			}
		}
		began, done := time.Now(), make(chan time.Duration)
		for _, r := range []*engine.Retry{a, b} {
			r.Progressed()
			go func() {
				failed := unavailable
				_ = r.Wait(w.t.Context(), &failed, 0)
				done <- time.Since(began)
			}()
		}
		first := <-done
		synctest.Wait()
		if !w.uplink.Breaker.Open() || held != 1 || first != time.Second {
			t.Errorf("after %v: open %v, %d uploads are held", first, w.uplink.Breaker.Open(), held)
		}
		last := w.notes[len(w.notes)-1]
		if last.Kind != engine.Waiting || !last.Blocked || last.Cause != "503; another upload is probing" {
			t.Errorf("note %+v", last)
		}
		if err := c.Wait(w.t.Context(), &lost, 0); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("a lost session waits for %v at the breaker: %v", time.Since(began), err)
		}
		for _, r := range []*engine.Retry{a, b, c} { // one of them made the probe
			r.Succeeded()
		}
		if second := <-done; second != 2*time.Second || w.uplink.Breaker.Open() {
			t.Errorf("admitted after %v", second)
		}
		for _, r := range []*engine.Retry{a, b, c} {
			r.Close()
		}
	})
}
