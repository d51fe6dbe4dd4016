package engine_test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload/internal/engine"
)

const mib = int64(1) << 20

// discard is an exchange that reads its body at once, as far as it can.
func discard(ctx context.Context, _ *session.Client, body io.Reader) session.Reply {
	n, err := io.Copy(io.Discard, body)
	return session.Reply{Op: session.OpPut, Sent: n, Err: err}
}

// sent sends n bytes to discard.
func sent(ctx context.Context, x *engine.Requester, n int64) session.Reply {
	return x.Send(ctx, session.OpPut, 0, bytes.NewReader(data(n)), discard)
}

// TestLimitIsShared checks that the data of all uploads passes at the rate of their limit, and that each upload gets the same,
// however many connections it has.
func TestLimitIsShared(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		rate        int64
		uploads     []int         // the connections of each, of which each sends 1 MiB
		first, last time.Duration // when the first and the last connection end
	}{
		{"one", mib, []int{1}, time.Second, time.Second},
		{"two", mib, []int{1, 1}, 2 * time.Second, 2 * time.Second},
		{"one with three connections, and one with one", mib, []int{3, 1}, 2 * time.Second, 4 * time.Second},
		{"no limit", engine.Unlimited, []int{1, 2}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakegcs.Options{}, func(w *world) {
				limit := engine.NewRateLimit(tt.rate)
				began := time.Now()
				var all sync.WaitGroup
				var mu sync.Mutex
				var ended []time.Duration
				for _, connections := range tt.uploads {
					u := *w.uplink
					u.Limit = limit.Share()
					for range connections {
						all.Go(func() {
							r := sent(w.t.Context(), engine.NewRequester(&u, 0, engine.NewPosition(mib)), mib)
							mu.Lock()
							defer mu.Unlock()
							if ended = append(ended, time.Since(began)); r.Sent != mib || r.Err != nil {
								t.Errorf("%+v", r)
							}
						})
					}
				}
				all.Wait()
				const tick = time.Second / 8
				if first, last := slices.Min(ended), slices.Max(ended); (first-tt.first).Abs() > tick || (last-tt.last).Abs() > tick {
					t.Errorf("ended after %v, want %v to %v", ended, tt.first, tt.last)
				}
				if held := limit.Held(); (held > 0) != (tt.last > 0) || held > tt.last {
					t.Errorf("held back for %v", held)
				}
			})
		})
	}
	if (*engine.RateLimit)(nil).Share() != nil || (*engine.RateLimit)(nil).Held() != 0 {
		t.Error("no limit limits something")
	}
}

// TestLimitChangesAtOnce checks that data which waits follows a new limit.
func TestLimitChangesAtOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		from, to int64
		want     time.Duration // for 1 MiB, if the limit changes after 10 s
	}{
		{"raise", 1 << 10, mib, 11 * time.Second},
		{"lower", mib / 16, mib / 64, 34 * time.Second},
		{"pause", mib / 16, 0, time.Hour},
		{"negative", mib / 16, -1, time.Hour},
		{"remove", 1 << 10, engine.Unlimited, 10 * time.Second},
		{"start paused", 0, mib, 11 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakegcs.Options{}, func(w *world) {
				limit := engine.NewRateLimit(tt.from)
				w.uplink.Limit = limit.Share()
				time.AfterFunc(10*time.Second, func() { limit.SetLimit(tt.to) })
				ctx, cancel := context.WithTimeoutCause(w.t.Context(), time.Hour, io.ErrNoProgress)
				defer cancel()
				began := time.Now()
				r := sent(ctx, w.requester(spec), mib)
				took := time.Since(began)
				if (took-tt.want).Abs() > time.Second/2 || limit.Rate() != max(tt.to, 0) || (r.Err == io.ErrNoProgress) != (took == time.Hour) {
					t.Errorf("took %v, want %v: %+v", took, tt.want, r)
				}
				// What waited holds up nothing that follows.
				if limit.SetLimit(mib); sent(w.t.Context(), w.requester(spec), mib).Err != nil || time.Since(began)-took > 9*time.Second/8 {
					t.Errorf("the next request took %v", time.Since(began)-took)
				}
			})
		})
	}
}

// TestPausedRequestIsNotMade checks that a request with data waits while uploads are paused, has its whole budget afterwards, and
// ends with its context. A request without data does not wait.
func TestPausedRequestIsNotMade(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		limit, x := engine.NewRateLimit(0), w.requester(spec)
		w.uplink.Limit = limit.Share()
		began := time.Now()
		if x.Stat(w.t.Context()); time.Since(began) > 0 {
			t.Error("a request without data waits")
		}
		ctx, cancel := context.WithTimeoutCause(w.t.Context(), time.Minute, io.ErrNoProgress)
		defer cancel()
		if r := sent(ctx, x, 1); !r.Unsent || r.Err != io.ErrNoProgress || attempts(x) != 1 {
			t.Errorf("canceled: %+v", r)
		}
		var both sync.WaitGroup
		for range 2 { // over two connections, of which one waits for the other
			both.Go(func() {
				ctx, cancel := context.WithTimeoutCause(w.t.Context(), time.Minute, io.ErrNoProgress)
				defer cancel()
				if r := sent(ctx, w.requester(spec), 1); !r.Unsent || r.Err != io.ErrNoProgress {
					t.Errorf("two canceled: %+v", r)
				}
			})
		}
		both.Wait()
		time.AfterFunc(time.Hour, func() { limit.SetLimit(mib) })
		if r := sent(w.t.Context(), x, 1); r.Err != nil || time.Since(began) != time.Hour+2*time.Minute || attempts(x) != 1 {
			t.Errorf("after %v, %d attempts: %+v", time.Since(began), attempts(x), r)
		}
		if sent(w.t.Context(), x, 1); attempts(x) != 2 {
			t.Errorf("%d attempts after a request that was not paused", attempts(x))
		}
	})
}

// TestPauseEndsWithTheReply checks that a reply which comes before the end of a request, and the end of its connection, need not wait until data
// passes, if a body is copied or sent from its memory.
func TestPauseEndsWithTheReply(t *testing.T) {
	t.Parallel()
	early, cut := faults.Action{Effect: faults.EffectStatus, Status: 403, Early: true}, faults.Action{Effect: faults.EffectCutRequest, Bytes: 1000}
	for i := range 4 {
		lend, do := i < 2, []faults.Action{early, cut}[i%2]
		inBubble(t, fakegcs.Options{Faults: on(faults.OpPut, do)}, func(w *world) {
			limit, x, uri := engine.NewRateLimit(16<<10), w.requester(spec), w.session(nil)
			w.uplink.Limit = limit.Share()
			time.AfterFunc(time.Second, func() { limit.SetLimit(0) })
			time.AfterFunc(time.Hour, func() { limit.SetLimit(engine.Unlimited) })
			p, err := file(data(2*q)).Next(w.t.Context(), 0, q)
			require.NoError(t, err)
			defer p.Finish()
			body := p.Reader
			if !lend {
				body = struct{ io.Reader }{body}
			}
			began := time.Now()
			r := x.Send(w.t.Context(), session.OpPut, 0, body, func(ctx context.Context, c *session.Client, body io.Reader) session.Reply {
				return c.Put(ctx, uri, chunk.Range{To: q}, 2*q, body)
			})
			if took := time.Since(began); r.Status != do.Status || took > 10*time.Minute {
				t.Errorf("%s, lend %v: %+v after %v", do.Effect, lend, r, took)
			}
		})
	}
}
