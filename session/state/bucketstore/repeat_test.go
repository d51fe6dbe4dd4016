package bucketstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/storeretry"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
)

// waits records the waits of calls with its context.
type waits struct {
	delays []time.Duration
	errs   []error
}

// retrying returns a context whose calls are retried for a duration, with waits of at most a second.
func (w *waits) retrying(ctx context.Context, lasts time.Duration) context.Context {
	return storeretry.With(ctx, storeretry.Retry{
		Policy: backoff.Policy{Maximum: time.Second},
		For:    func() time.Duration { return lasts },
		Waiting: func(p backoff.Pause, err error) {
			w.delays, w.errs = append(w.delays, p.Delay), append(w.errs, err)
		},
	})
}

// errOf returns the error of a call.
func errOf[T any](_ T, err error) error { return err }

// openState opens a Store as start does, without a process.
func (w *world) openState(ctx context.Context) (*bucketstore.Store, error) {
	return bucketstore.Open(ctx, w.client, "state", "uploads", &bucketstore.Options{Unsealed: true})
}

// While the bucket is down, each call waits as the context requires, reports each wait, and then
// fails with an error that names the bucket and the reason.
func TestBucketDown(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, w *world, s process, held state.Lease) error{
		"open":    func(ctx context.Context, w *world, _ process, _ state.Lease) error { return errOf(w.openState(ctx)) },
		"list":    func(ctx context.Context, _ *world, s process, _ state.Lease) error { return errOf(s.List(ctx)) },
		"load":    func(ctx context.Context, _ *world, s process, _ state.Lease) error { return errOf(s.Load(ctx, "a")) },
		"locked":  func(ctx context.Context, _ *world, s process, _ state.Lease) error { return errOf(s.Locked(ctx, "a")) },
		"acquire": func(ctx context.Context, _ *world, s process, _ state.Lease) error { return errOf(s.Acquire(ctx, "b")) },
		"sweep":   func(ctx context.Context, _ *world, s process, _ state.Lease) error { return errOf(s.Sweep(ctx, false)) },
		"save":    func(ctx context.Context, w *world, _ process, held state.Lease) error { return held.Save(ctx, w.saved) },
		"delete":  func(ctx context.Context, _ *world, _ process, held state.Lease) error { return held.Delete(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
				s := w.start("first")
				held := take(t, s, "a")
				w.saved = newUpload(t, w.client, "a")
				w.down()
				var all waits
				began := time.Now()
				err := call(all.retrying(t.Context(), 10*time.Second), w, s, held)
				if took := time.Since(began); took > 10*time.Second || took < 8*time.Second {
					t.Errorf("took %v", took)
				}
				if !errors.Is(err, session.ErrRetriesExhausted) || errors.Is(err, session.ErrNotFound) {
					t.Errorf("error %v", err)
				}
				if text := err.Error(); !strings.Contains(text, "state in gs://state/uploads: ") || !strings.Contains(text, "retries exhausted: 503 ") || strings.Count(text, "state in") != 1 {
					t.Errorf("error %q", text)
				}
				if len(all.delays) < 8 {
					t.Errorf("%d waits were reported", len(all.delays))
				}
				for i, d := range all.delays {
					if d > time.Second || !strings.HasPrefix(all.errs[i].Error(), "state in gs://state/uploads: ") || errors.Is(all.errs[i], session.ErrNotFound) {
						t.Errorf("wait of %v because of %v", d, all.errs[i])
					}
				}
				w.server.ClearFaults()
			})
		})
	}
}

// A program that sets RetryFor in the options of the Store gets that, whatever the context says.
// Without both, a call is retried for 10 minutes.
func TestRetryFor(t *testing.T) {
	for _, test := range []struct{ options, context, want time.Duration }{
		{0, time.Minute, time.Minute},
		{5 * time.Minute, time.Minute, 5 * time.Minute},
		{0, 0, 10 * time.Minute},
	} {
		inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
			s := w.start("first", func(o *bucketstore.Options) { o.RetryFor = test.options })
			w.down()
			ctx := t.Context()
			if test.context > 0 {
				ctx = new(waits).retrying(ctx, test.context)
			}
			began := time.Now()
			_, err := s.List(ctx)
			if took := time.Since(began); !errors.Is(err, session.ErrRetriesExhausted) || took > test.want || took < test.want-20*time.Second {
				t.Errorf("%v: took %v: %v", test, took, err)
			}
		})
	}
}

// A permanent refusal is not a spent budget, and names the bucket too.
func TestBucketMissing(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		began := time.Now()
		_, err := w.openState(t.Context())
		if !errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrRetriesExhausted) || !strings.HasPrefix(err.Error(), "state in gs://state/uploads: ") || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// slow makes the replies of the bucket arrive late.
func slow(t *testing.T, w *world, by time.Duration) {
	addFaults(t, w, faults.Fault{Match: faults.Match{Bucket: "state"}, Times: -1, Do: faults.Action{Effect: faults.EffectStallReply, For: by}})
}

// A bucket answers slower than the lease lasts. The calls fail with that reason, and report their
// waits.
func TestSlowBucket(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
		s := w.start("first", func(o *bucketstore.Options) { o.TTL = 2 * time.Second })
		l := take(t, s, "a")
		slow(t, w, 3*time.Second)
		var all waits
		ctx := all.retrying(t.Context(), 10*time.Second)
		began := time.Now()
		_, err := s.Acquire(ctx, "b")
		if took := time.Since(began); took > 14*time.Second || !errors.Is(err, bucketstore.ErrSlow) || !errors.Is(err, session.ErrRetriesExhausted) || errors.Is(err, session.ErrNotFound) {
			t.Errorf("after %v: %v", took, err)
		}
		if len(all.errs) < 3 || !errors.Is(all.errs[0], bucketstore.ErrSlow) {
			t.Errorf("waits: %v", all.errs)
		}
		const want = "no reply within 2s: the state bucket answers slower than the lease allows"
		if !strings.HasSuffix(err.Error(), want) {
			t.Errorf("error %q, want %q", err, want)
		}
		began = time.Now()
		if _, _, err := l.Begin(ctx); !errors.Is(err, bucketstore.ErrSlow) || !strings.HasPrefix(err.Error(), "the lease of the upload expired and cannot be renewed: ") || time.Since(began) > 3*time.Second {
			t.Errorf("Begin: %v after %v", err, time.Since(began))
		}
		w.server.ClearFaults()
	})
}

// A request ends because the lease was not renewed in time. Its error has the reason.
func TestExpiredBecause(t *testing.T) {
	for name, test := range map[string]struct {
		ttl  time.Duration
		slow time.Duration
		want string
		is   error
	}{
		"slow":                     {8 * time.Second, 3 * time.Second, "the lease of the upload expired: ", bucketstore.ErrSlow},
		"slow, with a short lease": {2 * time.Second, time.Second, "the lease of the upload expired: ", bucketstore.ErrSlow},
		"down":                     {time.Minute, 0, "the lease of the upload expired: state in gs://state/uploads: insert: 503 Service Unavailable", nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
				s := w.start("first", func(o *bucketstore.Options) { o.TTL = test.ttl })
				l := take(t, s, "a")
				request, end, err := l.Begin(t.Context())
				require.NoError(t, err)
				defer end()
				if test.slow > 0 {
					slow(t, w, test.slow)
				} else {
					w.down()
				}
				<-request.Done()
				err = context.Cause(request)
				if !strings.HasPrefix(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
					t.Errorf("cause %v", err)
				}
				w.server.ClearFaults()
			})
		})
	}
}
