package backoff_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/internal/require"
)

// script is an operation that returns its errors in order and then nil. It
// records when it is called.
type script struct {
	errs  []error
	start time.Time
	calls []time.Duration
}

func (s *script) run(context.Context) (int, error) {
	if s.start.IsZero() {
		s.start = time.Now()
	}
	s.calls = append(s.calls, time.Since(s.start))
	if len(s.errs) == 0 {
		return len(s.calls), nil
	}
	err := s.errs[0]
	s.errs = s.errs[1:]
	return 0, err
}

func times(n int, err error) []error { return slices.Repeat([]error{err}, n) }

func status(code int) error { return &backoff.StatusError{Code: code} }

func TestRetry(t *testing.T) {
	const s = time.Second
	wait := func(d time.Duration) error { return &backoff.StatusError{Code: 503, RetryAfter: d} }
	progress := backoff.Progress(errors.New("2 items left"))
	tests := []struct {
		name  string
		errs  []error
		opts  *backoff.Options
		calls []time.Duration
		stop  error // nil for success
	}{
		{"at once", nil, nil, []time.Duration{0}, nil},
		{"third time", times(2, status(503)), nil, []time.Duration{0, 1 * s, 3 * s}, nil},
		{"last chance", times(5, io.ErrUnexpectedEOF), nil, []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s}, nil},
		{"budget spent", times(6, status(429)), nil, []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s}, backoff.ErrRetriesExhausted},
		{"two retries", times(6, status(500)), &backoff.Options{Budget: backoff.Budget{Retries: 2}}, []time.Duration{0, 1 * s, 3 * s}, backoff.ErrRetriesExhausted},
		{"no retries", times(6, status(500)), &backoff.Options{Budget: backoff.Budget{Retries: -1}}, []time.Duration{0}, backoff.ErrRetriesExhausted},
		{"for 20 s", times(99, status(500)), &backoff.Options{Budget: backoff.Budget{For: 20 * s}}, []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s}, backoff.ErrRetriesExhausted},
		{"permanent", []error{status(404)}, nil, []time.Duration{0}, backoff.ErrPermanent},
		{"permanent later", []error{status(503), status(412)}, nil, []time.Duration{0, 1 * s}, backoff.ErrPermanent},
		{"unknown", []error{errors.New("odd")}, nil, []time.Duration{0}, backoff.ErrPermanent},
		{"marked transient", []error{backoff.Transient.Mark(errors.New("odd"))}, nil, []time.Duration{0, 1 * s}, nil},
		{"marked permanent", []error{backoff.Permanent.Mark(status(503))}, nil, []time.Duration{0}, backoff.ErrPermanent},
		{"marked deep inside", []error{fmt.Errorf("batch: %w", backoff.Transient.Mark(errors.New("odd")))}, nil, []time.Duration{0, 1 * s}, nil},
		{"retry-after", []error{wait(7 * s), wait(0)}, nil, []time.Duration{0, 7 * s, 9 * s}, nil},
		{"retry-after of a day", []error{wait(24 * time.Hour)}, nil, []time.Duration{0, 59 * s}, nil},
		{"progress resets the budget", slices.Concat(times(5, status(503)), []error{progress}, times(4, status(503))), nil,
			[]time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s, 32 * s, 34 * s, 38 * s, 46 * s, 62 * s}, nil},
		{"progress, then nothing", slices.Concat([]error{progress}, times(9, status(503))), nil, []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s}, backoff.ErrRetriesExhausted},
		{"progress restores the time", slices.Concat(times(3, status(503)), []error{progress}, times(9, status(503))), &backoff.Options{Budget: backoff.Budget{For: 10 * s}},
			[]time.Duration{0, 1 * s, 3 * s, 7 * s, 8 * s, 10 * s, 14 * s}, backoff.ErrRetriesExhausted},
		{"progress with a permanent error", []error{backoff.Progress(status(403))}, nil, []time.Duration{0}, backoff.ErrPermanent},
		{"credentials without a refresh", []error{status(401)}, nil, []time.Duration{0}, backoff.ErrPermanent},
		{"own classification", []error{status(404)}, &backoff.Options{Classify: func(error) backoff.Verdict { return backoff.Transient }}, []time.Duration{0, 1 * s}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				op := &script{errs: test.errs}
				got, err := backoff.Retry(t.Context(), noJitter, op.run, test.opts)
				if !reflect.DeepEqual(op.calls, test.calls) {
					t.Errorf("called at %v, want %v", op.calls, test.calls)
				}
				if test.stop == nil {
					if err != nil || got != len(test.calls) {
						t.Errorf("Retry = %d, %v, want %d, nil", got, err, len(test.calls))
					}
					return
				}
				failed, ok := errors.AsType[*backoff.Error](err)
				if !ok {
					t.Fatalf("Retry = %v, want a *backoff.Error", err)
				}
				if !errors.Is(err, test.stop) || failed.Attempts != len(test.calls) || failed.Waited != test.calls[len(test.calls)-1] || len(failed.History) != failed.Attempts {
					t.Errorf("error = %+v, want %v after %d attempts and %v", failed, test.stop, len(test.calls), test.calls[len(test.calls)-1])
				}
				last := test.errs[len(test.calls)-1]
				if !errors.Is(err, last) || !strings.Contains(err.Error(), last.Error()) || !strings.Contains(err.Error(), test.stop.Error()) {
					t.Errorf("error %q does not contain %q and %q", err, last, test.stop)
				}
				ends := append(test.calls, test.calls[len(test.calls)-1]) // no wait follows the last attempt
				for i, a := range failed.History {
					if wait := ends[i+1] - ends[i]; a.Number != i+1 || a.Err != test.errs[i] || a.Wait != wait {
						t.Errorf("history[%d] = %+v, want number %d, error %v, wait %v", i, a, i+1, test.errs[i], wait)
					}
				}
			})
		})
	}
}

func TestRetryPolicyRefused(t *testing.T) {
	op := new(script)
	_, err := backoff.Retry(t.Context(), backoff.Policy{Maximum: time.Hour}, op.run, nil)
	if err == nil || len(op.calls) != 0 {
		t.Errorf("Retry with a wait of an hour = %v after %d calls, want an error and none", err, len(op.calls))
	}
}

func TestRetryContext(t *testing.T) {
	reason := errors.New("the user pressed a key")
	t.Run("canceled in a wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(2500*time.Millisecond, func() { cancel(reason) })
			op := &script{errs: times(9, status(503))}
			start := time.Now()
			_, err := backoff.Retry(ctx, noJitter, op.run, nil)
			if elapsed := time.Since(start); elapsed != 2500*time.Millisecond || len(op.calls) != 2 {
				t.Errorf("stopped after %v and %d calls, want 2.5s and 2", elapsed, len(op.calls))
			}
			failed, _ := errors.AsType[*backoff.Error](err)
			if !errors.Is(err, reason) || !errors.Is(err, op.errs[0]) || failed.Waited != 2500*time.Millisecond {
				t.Errorf("error = %v, want the reason and the last error", err)
			}
		})
	})
	t.Run("canceled in the operation", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		calls := 0
		_, err := backoff.Retry(ctx, noJitter, func(context.Context) (int, error) {
			calls++
			cancel(reason)
			return 0, status(503)
		}, nil)
		if calls != 1 || !errors.Is(err, reason) {
			t.Errorf("Retry = %v after %d calls, want %v after 1", err, calls, reason)
		}
	})
	t.Run("the wait exceeds the deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			op := &script{errs: times(9, status(503))}
			start := time.Now()
			_, err := backoff.Retry(ctx, noJitter, op.run, nil)
			// The wait that starts at 3 s would end at 7 s.
			if elapsed := time.Since(start); elapsed != 3*time.Second || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("stopped after %v with %v, want 3s and the deadline", elapsed, err)
			}
		})
	})
	t.Run("timeout of one attempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			_, err := backoff.Retry(t.Context(), noJitter, func(ctx context.Context) (int, error) {
				if calls++; calls == 3 {
					return 0, nil
				}
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				<-ctx.Done()
				return 0, ctx.Err()
			}, nil)
			if calls != 3 || err != nil {
				t.Errorf("Retry = %v after %d calls, want nil after 3", err, calls)
			}
		})
	})
}

func TestRetryRefresh(t *testing.T) {
	down := errors.New("no token")
	tests := []struct {
		name      string
		errs      []error
		refresh   []error // what Refresh returns, call by call
		calls     []time.Duration
		refreshes int
		stop      error
	}{
		{"expired", []error{status(401)}, times(1, nil), []time.Duration{0, 0}, 1, nil},
		{"refused after the refresh", times(3, status(401)), times(3, nil), []time.Duration{0, 0}, 1, backoff.ErrPermanent},
		{"refused after the refresh and a failure", []error{status(401), status(503), status(401)}, times(3, nil), []time.Duration{0, 0, time.Second}, 1, backoff.ErrPermanent},
		{"expired again after progress", []error{status(401), backoff.Progress(status(503)), status(401)}, times(3, nil), []time.Duration{0, 0, time.Second, time.Second}, 2, nil},
		{"refresh fails", []error{status(401)}, []error{down}, []time.Duration{0}, 1, down},
		{"refresh fails transiently", times(4, status(401)), []error{status(503), status(503), nil}, []time.Duration{0, time.Second, 3 * time.Second, 3 * time.Second}, 3, backoff.ErrPermanent},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				op := &script{errs: test.errs}
				refreshes := 0
				_, err := backoff.Retry(t.Context(), noJitter, op.run, &backoff.Options{Refresh: func(context.Context) error {
					refreshes++
					return test.refresh[refreshes-1]
				}})
				if !reflect.DeepEqual(op.calls, test.calls) || refreshes != test.refreshes {
					t.Errorf("called at %v, %d refreshes, want %v and %d", op.calls, refreshes, test.calls, test.refreshes)
				}
				if !errors.Is(err, test.stop) {
					t.Errorf("Retry = %v, want %v", err, test.stop)
				}
			})
		})
	}
}

func TestRetryObserverAndCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		left := backoff.Progress(errors.New("1 left"))
		op := &script{errs: []error{left, io.EOF}}
		var counters backoff.Counters
		var seen []backoff.Attempt
		_, err := backoff.Retry(t.Context(), noJitter, op.run, &backoff.Options{
			Counters: &counters,
			Observe:  func(a backoff.Attempt) { seen = append(seen, a) },
		})
		require.NoError(t, err)
		want := []backoff.Attempt{
			{Number: 1, Err: left, Verdict: backoff.Transient, Progress: true, Wait: s},
			{Number: 2, Err: io.EOF, Verdict: backoff.Transient, Wait: 2 * s},
			{Number: 3},
		}
		if !reflect.DeepEqual(seen, want) {
			t.Errorf("observed %+v\nwant %+v", seen, want)
		}
		wantCounts := backoff.Counts{
			Attempts: 3, Failures: 2, Retries: 2, Waits: 2, Waited: 3 * s,
			Causes: map[string]int64{"partial": 1, "connection": 1},
		}
		if got := counters.Counts(); !reflect.DeepEqual(got, wantCounts) {
			t.Errorf("Counts() = %+v, want %+v", got, wantCounts)
		}
	})
}

// TestRetryBreaker checks what Retry reports to the breaker, and which attempts an
// observer sees during a wait at the breaker.
func TestRetryBreaker(t *testing.T) {
	const s = time.Second
	t.Run("held", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			breaker := &backoff.Breaker{Threshold: 2}
			first := true
			var wg sync.WaitGroup
			defer wg.Wait()
			wg.Go(func() {
				_, err := backoff.Retry(t.Context(), noJitter, func(context.Context) (int, error) {
					if first {
						first = false
						time.Sleep(s / 2)
						return 0, io.EOF
					}
					time.Sleep(40 * s)
					return 0, nil
				}, &backoff.Options{Breaker: breaker})
				if err != nil {
					t.Error(err)
				}
			})
			time.Sleep(s)
			op := &script{errs: []error{io.EOF}}
			var seen []backoff.Attempt
			var counters backoff.Counters
			_, err := backoff.Retry(t.Context(), noJitter, op.run, &backoff.Options{
				Breaker: breaker, Counters: &counters,
				Observe: func(a backoff.Attempt) { seen = append(seen, a) },
			})
			require.NoError(t, err)
			// The probe begins after 1.5 s. The next one may begin 32 s later.
			want := []backoff.Attempt{
				{Number: 1, Err: io.EOF, Verdict: backoff.Transient, Wait: s},
				{Number: 1, Err: io.EOF, Verdict: backoff.Transient, Blocked: true, Wait: 32 * s},
				{Number: 2},
			}
			if !reflect.DeepEqual(seen, want) {
				t.Errorf("observed %+v\nwant %+v", seen, want)
			}
			if want := []time.Duration{0, 32*s + s/2}; !reflect.DeepEqual(op.calls, want) {
				t.Errorf("called at %v, want %v", op.calls, want)
			}
			if c := counters.Counts(); c.Blocked != 1 || c.Waits != 2 || c.Waited != 32*s+s/2 || c.Retries != 1 {
				t.Errorf("Counts() = %+v", c)
			}
		})
	})
	// many runs operations that fail with err and then succeed, until all have
	// ended.
	many := func(t *testing.T, err func() error) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			breaker := new(backoff.Breaker)
			start := time.Now()
			var wg sync.WaitGroup
			for range 32 {
				wg.Go(func() {
					op := &script{errs: []error{err()}}
					if _, err := backoff.Retry(t.Context(), noJitter, func(ctx context.Context) (int, error) {
						if len(op.errs) == 0 {
							time.Sleep(s)
						}
						return op.run(ctx)
					}, &backoff.Options{Breaker: breaker}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			took = time.Since(start)
		})
		return took
	}
	t.Run("opens by doubling", func(t *testing.T) {
		// 1, 2, 4, 8 and 16 retries of a second each, and one.
		if took := many(t, func() error { return status(503) }); took != 7*s {
			t.Errorf("took %v, want 1 + 6 s", took)
		}
	})
	t.Run("the rate limit of an object", func(t *testing.T) {
		err := func() error {
			return &backoff.StatusError{Code: 429, Reason: "rateLimitExceeded", Message: "The object b/o exceeded the rate limit for object mutation operations."}
		}
		if took := many(t, err); took != 2*s {
			t.Errorf("took %v, want 2 s", took)
		}
	})
	t.Run("progress", func(t *testing.T) {
		if took := many(t, func() error { return backoff.Progress(io.EOF) }); took != 2*s {
			t.Errorf("took %v, want 2 s", took)
		}
	})
	t.Run("a permanent failure ends the probe", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			breaker := &backoff.Breaker{Threshold: 1}
			start := time.Now()
			var wg sync.WaitGroup
			for range 32 {
				wg.Go(func() {
					op := &script{errs: []error{io.EOF, status(404)}}
					_, err := backoff.Retry(t.Context(), noJitter, op.run, &backoff.Options{Breaker: breaker})
					if !errors.Is(err, backoff.ErrPermanent) || time.Since(start) != s {
						t.Errorf("%v after %v", err, time.Since(start))
					}
				})
			}
			wg.Wait()
		})
	})
}

func TestRetryHistoryBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := &script{errs: append(times(1000, backoff.Progress(io.EOF)), status(400))}
		_, err := backoff.Retry(t.Context(), noJitter, op.run, nil)
		failed, ok := errors.AsType[*backoff.Error](err)
		if !ok || failed.Attempts != 1001 || len(failed.History) != 32 {
			t.Fatalf("Retry = %v, want 1001 attempts, 32 of them in the history", err)
		}
		for i, a := range failed.History {
			if a.Number != 970+i {
				t.Errorf("history[%d].Number = %d, want %d", i, a.Number, 970+i)
			}
		}
	})
}

func TestReplyError(t *testing.T) {
	tests := []struct {
		name       string
		code       int
		body       string
		retryAfter string
		want       backoff.StatusError
		text       string
	}{
		{"classic", 403, `{"error":{"code":403,"message":"Slow down.","errors":[{"domain":"usageLimits","reason":"rateLimitExceeded"}]}}`, "",
			backoff.StatusError{Code: 403, Reason: "rateLimitExceeded", Message: "Slow down."}, "HTTP 403 Forbidden (rateLimitExceeded): Slow down."},
		{"details", 429, `{"error":{"status":"RESOURCE_EXHAUSTED","message":"Quota.","details":[{"@type":"x"},{"reason":"RATE_LIMIT_EXCEEDED"}]}}`, "",
			backoff.StatusError{Code: 429, Reason: "RATE_LIMIT_EXCEEDED", Message: "Quota."}, "HTTP 429 Too Many Requests (RATE_LIMIT_EXCEEDED): Quota."},
		{"html", 502, "<html>Bad Gateway", "", backoff.StatusError{Code: 502}, "HTTP 502 Bad Gateway"},
		{"other JSON", 500, `{"error":"invalid_grant"}`, "", backoff.StatusError{Code: 500}, "HTTP 500 Internal Server Error"},
		{"no name", 599, "", "", backoff.StatusError{Code: 599}, "HTTP 599"},
		{"retry-after", 503, "", "12", backoff.StatusError{Code: 503, RetryAfter: 12 * time.Second}, "HTTP 503 Service Unavailable"},
	}
	for _, test := range tests {
		resp := &http.Response{StatusCode: test.code, Header: http.Header{"Retry-After": {test.retryAfter}}}
		if got := backoff.ReplyError(resp, []byte(test.body)); *got != test.want || got.Error() != test.text {
			t.Errorf("%s: error %+v, want %+v", test.name, got, test.want)
		}
	}
}

func FuzzReplyError(f *testing.F) {
	f.Add(403, []byte(`{"error":{"errors":[{"reason":"rateLimitExceeded"}]}}`), "3")
	f.Add(503, []byte("<html>"), "Sat, 21 Nov 2026 10:00:30 GMT")
	f.Fuzz(func(t *testing.T, code int, body []byte, after string) {
		resp := &http.Response{StatusCode: code, Header: http.Header{"Retry-After": {after}}}
		if err := backoff.ReplyError(resp, body); err.Code != code || err.RetryAfter < 0 {
			t.Errorf("error of status %d: %+v", code, err)
		}
	})
}
