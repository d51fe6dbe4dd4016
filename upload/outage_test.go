package upload_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// down makes every request fail from now on.
func (w *world) down(do faults.Action) {
	w.t.Helper()
	w.addFaults(faults.Fault{Times: -1, Do: do})
}

// many starts n uploads of content at the same time, and returns the time and the
// error of the end of each.
func (w *world) many(n int, content []byte, uploader func(i int) *upload.Uploader) (ended []time.Duration, errs []error) {
	w.t.Helper()
	path := w.file(content)
	ended, errs = make([]time.Duration, n), make([]error, n)
	start := time.Now()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			_, errs[i] = uploader(i).File(w.t.Context(), path, upload.Spec{Bucket: "bkt", Object: fmt.Sprint(i)})
			ended[i] = time.Since(start)
		})
	}
	wg.Wait()
	return ended, errs
}

func withoutStore(o *upload.Options) { o.Store = nil }

// requests returns the times of all requests.
func (w *world) requests(start time.Time) (times []time.Duration) {
	for _, r := range w.srv.Requests() {
		times = append(times, r.Time.Sub(start))
	}
	slices.Sort(times)
	return times
}

// TestManyUploadsInAnOutage checks that uploads that share a breaker make at most 1.2
// requests each in the first 32 s without the service, and then one request per
// longest wait in total.
func TestManyUploadsInAnOutage(t *testing.T) {
	skipShort(t)
	t.Parallel()
	const n = 32
	shared := func(w *world, with ...func(*upload.Options)) func(int) *upload.Uploader {
		up := w.uploader(append(with, withoutStore)...)
		return func(int) *upload.Uploader { return up }
	}
	for _, tt := range []struct {
		name        string
		size        int64
		uploader    func(w *world) func(int) *upload.Uploader
		first, last time.Duration // when uploads end
	}{
		// A small upload ends after a wait of 1 to 2 s, and twice 36 s at the breaker.
		{"small", q, func(w *world) func(int) *upload.Uploader { return shared(w) }, 73 * time.Second, 78 * time.Second},
		{"with sessions", large, func(w *world) func(int) *upload.Uploader { return shared(w, largeChunks) }, 73 * time.Second, 78 * time.Second},
		{"retry for 2 h", q, func(w *world) func(int) *upload.Uploader {
			return shared(w, func(o *upload.Options) { o.RetryFor = 2 * time.Hour })
		}, 2*time.Hour - 32*time.Second, 2 * time.Hour},
		{"two uploaders", q, func(w *world) func(int) *upload.Uploader {
			breaker := new(backoff.Breaker)
			with := func(o *upload.Options) { o.Breaker, o.RetryFor = breaker, time.Hour }
			ups := []*upload.Uploader{w.uploader(with, withoutStore), w.uploader(with, withoutStore)}
			return func(i int) *upload.Uploader { return ups[i%2] }
		}, time.Hour - 32*time.Second, time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				w.down(faults.Action{Effect: faults.EffectStatus, Status: 503})
				uploader := tt.uploader(w)
				start := time.Now()
				ended, errs := w.many(n, data(tt.size), uploader)
				for i, err := range errs {
					if !errors.Is(err, session.ErrRetriesExhausted) {
						t.Errorf("upload %d: %v, want ErrRetriesExhausted", i, err)
					}
				}
				if first, last := slices.Min(ended), slices.Max(ended); first < tt.first || last > tt.last {
					t.Errorf("uploads ended between %v and %v, want %v to %v", first, last, tt.first, tt.last)
				}
				requests := w.requests(start)
				early, _ := slices.BinarySearch(requests, 32*time.Second)
				t.Logf("%d uploads: %d requests in 32 s, %d in all, ended after %v to %v", n, early, len(requests), slices.Min(ended), slices.Max(ended))
				if early > n*6/5 {
					t.Errorf("%d requests in 32 s, want at most %d", early, n*6/5)
				}
				for i := early + 1; i < len(requests); i++ {
					if d := requests[i] - requests[i-1]; d < 32*time.Second {
						t.Errorf("a request after %v, %v after the one before", requests[i], d)
					}
				}
				w.wantReports(n, 32*time.Second)
			})
		})
	}
	t.Run("breaker off", func(t *testing.T) {
		inBubble(t, nil, func(w *world) {
			w.down(faults.Action{Effect: faults.EffectStatus, Status: 503})
			w.many(n, data(100), shared(w, func(o *upload.Options) { o.Breaker = backoff.NoBreaker }))
			if got := len(w.srv.Requests()); got != 6*n {
				t.Errorf("%d requests, want 6 for each of %d uploads", got, n)
			}
		})
	})
	for _, tt := range []struct {
		outage   time.Duration
		retryFor time.Duration
	}{{10 * time.Minute, time.Hour}, {25 * time.Second, 0}, {60 * time.Second, 0}}[:testsize.Full(3, 1)] {
		t.Run(fmt.Sprintf("of %v", tt.outage), func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				content := data(large)
				w.down(faults.Action{Effect: faults.EffectStatus, Status: 503})
				time.AfterFunc(tt.outage, w.srv.ClearFaults)
				ended, errs := w.many(n, content, shared(w, largeChunks, func(o *upload.Options) { o.RetryFor = tt.retryFor }))
				for i, err := range errs {
					if err != nil {
						t.Errorf("upload %d: %v", i, err)
						continue
					}
					w.wantObject(fmt.Sprint(i), content)
				}
				if last := slices.Max(ended); last > tt.outage+32*time.Second+time.Second {
					t.Errorf("the last upload ended after %v", last)
				}
			})
		})
	}
}

// wantReports checks that each of n uploads reported at least once in every
// interval, and that those that waited at the breaker reported it.
func (w *world) wantReports(n int, every time.Duration) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	held := map[string]time.Duration{} // the reported time at the breaker
	for _, e := range w.events {
		if e.Kind != upload.Waiting {
			continue
		}
		if e.Delay > every {
			w.t.Errorf("a report of a wait of %v", e.Delay)
		}
		if failed, ok := e.Err.(*session.Error); !ok || failed.Status != 503 {
			w.t.Errorf("error %v", e.Err)
		}
		switch {
		case e.Blocked && e.Cause == "503; another upload is probing":
			held[e.Spec.Object] += e.Delay
		case e.Blocked || e.Cause != "503":
			w.t.Errorf("cause %q, blocked %v", e.Cause, e.Blocked)
		}
	}
	for i := range n {
		if held[fmt.Sprint(i)] < every {
			w.t.Errorf("upload %d reported %v at the breaker", i, held[fmt.Sprint(i)])
		}
	}
}

// TestPolicyIsUsed checks that the waits are those of Options.Policy.
func TestPolicyIsUsed(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		w.down(faults.Action{Effect: faults.EffectStatus, Status: 503})
		up := w.uploader(func(o *upload.Options) {
			o.Policy = backoff.Policy{Initial: 100 * time.Millisecond, Maximum: 300 * time.Millisecond, Jitter: backoff.NoJitter}
		})
		_, err := up.File(w.t.Context(), w.file(data(10)), spec)
		e, _ := errors.AsType[*session.Error](err)
		if e == nil || e.Waits[0].Delay != 100*time.Millisecond || e.Waits[2].Delay != 300*time.Millisecond {
			t.Errorf("error = %v, waits %v", err, e.Waits)
		}
	})
}

// TestInterrupt checks that a canceled context ends a wait at once, and keeps the
// session. Only the text of the error has the cause.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503, RetryAfter: "50"}})
		ctx, cancel := context.WithCancelCause(w.t.Context())
		why := errors.New("the user said so")
		time.AfterFunc(10*time.Second, func() { cancel(why) })
		start := time.Now()
		res, err := w.uploader().File(ctx, w.file(data(9*mib)), spec)
		if !errors.Is(err, context.Canceled) || time.Since(start) != 10*time.Second || !res.Resumable {
			t.Errorf("after %v: %+v, %v", time.Since(start), res, err)
		}
		if errors.Is(err, why) || errors.Is(err, session.ErrRetriesExhausted) {
			t.Errorf("the error is more than the context's: %v", err)
		}
		if text := err.Error(); !strings.Contains(text, why.Error()) || !strings.Contains(text, "503") {
			t.Errorf("the error does not say why, or what was wrong before: %v", err)
		}
		if e, ok := errors.AsType[*upload.InterruptedError](err); !ok || e.Committed != 0 || e.Sent != 9*mib-q || !e.Resumable {
			t.Errorf("error = %#v", e)
		}
	})
}

// TestCauseOfASiblingIsNotOurs checks that an upload which is canceled because a
// sibling failed keeps its saved state, even if the sibling's error is one that ends
// a session. errgroup.WithContext cancels in this way.
func TestCauseOfASiblingIsNotOurs(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, cause := range []error{
		session.ErrChecksum, session.ErrSessionLost, session.ErrPrecondition, session.ErrUnexpectedData, session.ErrSourceChanged,
		state.ErrInUse, state.ErrCorrupt,
		&session.Error{Op: session.OpPut, Status: 412, Kind: session.ErrPrecondition},
		&upload.InterruptedError{Committed: 1, Sent: 2},
	} {
		for _, op := range []faults.Op{faults.OpPut, faults.OpQuery, faults.OpFinalize} {
			inBubble(t, nil, func(w *world) {
				content := data(large)
				path := w.file(content)
				w.addFaults(
					faults.Fault{Match: faults.Match{Op: op}, Do: faults.Action{Effect: faults.EffectStall}},
					faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: 2 * mib}},
				)
				ctx, cancel := context.WithCancelCause(w.t.Context())
				time.AfterFunc(20*time.Second, func() { cancel(fmt.Errorf("sibling: %w", cause)) })
				res, err := w.uploader(largeChunks).File(ctx, path, spec)
				if !errors.Is(err, context.Canceled) || errors.Is(err, cause) || !res.Resumable {
					t.Errorf("%s, canceled because of %v: %v, resumable %v", op, cause, err, res.Resumable)
				}
				w.wantSaved(1)
				w.srv.ClearFaults()
				w.done(w.uploader(largeChunks).File(w.t.Context(), path, spec))
				w.wantObject("obj", content)
			})
		}
	}
}
