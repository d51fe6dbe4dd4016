package batch

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/internal/grace"
)

// work is a job. It decides, and then uploads, unless it is skipped.
type work struct {
	large, skipped, hint bool // hint: it may be skipped without a request
	decides, uploads     time.Duration
}

// run runs jobs, and returns the most that uploaded at a time, of both kinds, and the most that decided.
func run(t *testing.T, small, large Kind, jobs int, all []work, outcome func(work)) (mostSmall, mostLarge, mostDeciding int) {
	t.Helper()
	var uploading [2]int
	var most [2]int
	deciding := 0
	locked := make(chan struct{}, 1)
	change := func(counter, highest *int, by int) {
		locked <- struct{}{}
		*counter += by
		*highest = max(*highest, *counter)
		<-locked
	}
	p := NewPool(t.Context(), small, large, jobs, func(w work, at *Place) (work, int64) {
		kind := 0
		if w.large {
			kind = 1
		}
		change(&deciding, &mostDeciding, 1)
		time.Sleep(w.decides)
		if w.skipped {
			change(&deciding, &mostDeciding, -1)
			return w, 0
		}
		for i := range 2 { // the second call has no effect
			if waited, err := at.Take(t.Context()); err != nil || waited != (i == 0 && at.Limited()) {
				t.Errorf("Take: %v, %v", waited, err)
			}
		}
		change(&deciding, &mostDeciding, -1)
		change(&uploading[kind], &most[kind], 1)
		time.Sleep(w.uploads)
		change(&uploading[kind], &most[kind], -1)
		return w, 1000
	})
	n := 0
	ended := p.Run(func() {
		for _, w := range all {
			if !p.Put(w, w.large, w.hint) {
				t.Error("Put: the batch has ended")
			}
		}
	}, func(w work) bool {
		n++
		if outcome != nil {
			outcome(w)
		}
		return true
	})
	if !ended || n != len(all) {
		t.Errorf("%d outcomes of %d jobs, ended %v", n, len(all), ended)
	}
	return most[0], most[1], mostDeciding
}

func times(n int, w work) (all []work) {
	for range n {
		all = append(all, w)
	}
	return all
}

// TestPoolLimits checks how many jobs upload at a time, and how long they take together: each uploads for a second.
func TestPoolLimits(t *testing.T) {
	second, largeSecond := work{uploads: time.Second}, work{large: true, uploads: time.Second}
	limit := func(n int) *backoff.Limiter { return &backoff.Limiter{First: n, Max: n} }
	for _, tt := range []struct {
		name                 string
		small, large         Kind
		jobs                 int
		all                  []work
		wantSmall, wantLarge int
		took                 time.Duration
	}{
		{"fixed", Kind{Fixed: 3}, Kind{Fixed: 2}, 0, append(times(6, second), times(6, largeSecond)...), 3, 2, 3 * time.Second},
		{"fixed, although there is a limiter", Kind{Fixed: 3, Limiter: limit(1), Deciders: 9}, Kind{Fixed: 1}, 0, times(6, second), 3, 0, 2 * time.Second},
		{"both kinds together", Kind{Fixed: 3}, Kind{Fixed: 2}, 1, append(times(2, second), times(2, largeSecond)...), 1, 1, 4 * time.Second},
		{"limiter", Kind{Limiter: limit(4), Deciders: 2}, Kind{Fixed: 1}, 0, times(12, second), 4, 0, 3 * time.Second},
		{"limiter of large ones", Kind{Fixed: 1}, Kind{Limiter: limit(2), Deciders: 1, Streams: true}, 0, times(4, largeSecond), 0, 2, 2 * time.Second},
		{"limiter and jobs", Kind{Limiter: limit(4), Deciders: 2}, Kind{Fixed: 1}, 2, times(4, second), 2, 0, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			small, large, _ := run(t, tt.small, tt.large, tt.jobs, tt.all, nil)
			if took := time.Since(began); small != tt.wantSmall || large != tt.wantLarge || took != tt.took {
				t.Errorf("%s: %d small and %d large ones at a time in %v, want %d, %d, %v", tt.name, small, large, took, tt.wantSmall, tt.wantLarge, tt.took)
			}
			for _, k := range []Kind{tt.small, tt.large} {
				if k.Limiter != nil && k.Limiter.InFlight() != 0 {
					t.Errorf("%s: %d jobs count as in flight", tt.name, k.Limiter.InFlight())
				}
			}
		})
	}
}

// TestPoolDeciders checks how many jobs decide at a time: few if all of them upload, so that not many files are
// open, but as many as may be if they are skipped, however few the limiter permits.
func TestPoolDeciders(t *testing.T) {
	limiter := func(n int) *backoff.Limiter { return &backoff.Limiter{First: n, Max: n} }
	for _, tt := range []struct {
		name     string
		limit    int
		job      work
		deciding int
		took     time.Duration // of 64 jobs
	}{
		{"all upload", 4, work{decides: time.Second, uploads: 9 * time.Second}, 4, 0},
		{"all are skipped", 32, work{skipped: true, hint: true, decides: time.Second}, 8, 8 * time.Second},
		{"all are skipped, and the limit has fallen", 1, work{skipped: true, hint: true, decides: time.Second}, 4, 16 * time.Second},
		{"all upload, and the limit has fallen", 1, work{decides: time.Second}, 1, 64 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, _, deciding := run(t, Kind{Limiter: limiter(tt.limit), Deciders: 8}, Kind{Fixed: 1}, 0, times(64, tt.job), nil)
			if took := time.Since(began); deciding != tt.deciding || tt.took != 0 && took != tt.took {
				t.Errorf("%s: %d decide at a time, and all took %v; want %d, %v", tt.name, deciding, took, tt.deciding, tt.took)
			}
		})
	}
}

// TestPoolSkipsMeanwhile checks that jobs which are skipped wait neither for the uploads of others nor for those
// before them, and that a limiter which grows gets more workers.
func TestPoolSkipsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, skipped := time.Now(), 0
		all := append(times(6, work{uploads: time.Hour, hint: true}), times(50, work{skipped: true, hint: true})...)
		run(t, Kind{Limiter: &backoff.Limiter{First: 2, Max: 2}, Deciders: 16}, Kind{Fixed: 1}, 0, all, func(w work) {
			if w.skipped && time.Since(began) < time.Second {
				skipped++
			}
		})
		if skipped != 50 {
			t.Errorf("%d jobs were skipped in the first second, want 50", skipped)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		limiter := &backoff.Limiter{First: 1, Max: 16}
		if most, _, _ := run(t, Kind{Limiter: limiter, Deciders: 2}, Kind{Fixed: 1}, 0, times(400, work{uploads: 100 * time.Millisecond}), nil); most != 16 {
			t.Errorf("at most %d jobs at a time, and the limit is %d", most, limiter.Limit())
		}
	})
}

// TestPoolOfUnlimitedJobs checks how many outcomes wait for a caller at most, if it sets no number of jobs.
func TestPoolOfUnlimitedJobs(t *testing.T) {
	for _, tt := range []struct {
		kind Kind
		want int
	}{
		{Kind{Fixed: 3, Limiter: &backoff.Limiter{}, Deciders: 9}, 3},
		{Kind{Limiter: &backoff.Limiter{Max: 5}, Deciders: 9}, 14},
		{Kind{Limiter: &backoff.Limiter{}, Deciders: 9}, 9 + 1024},
	} {
		if got := newLane[int](t.Context(), tt.kind, nil).most(); got != tt.want {
			t.Errorf("%+v: %d jobs, want %d", tt.kind, got, tt.want)
		}
	}
}

// TestPoolEnds checks that a batch ends with its context, even if the next job cannot be read, and with the loop
// over its outcomes.
func TestPoolEnds(t *testing.T) {
	for _, how := range []string{"cancel", "break", "read"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			limiter := &backoff.Limiter{First: 2, Max: 2}
			kind := Kind{Limiter: limiter, Deciders: 2}
			p := NewPool(ctx, kind, Kind{Fixed: 1}, 0, func(job int, at *Place) (int, int64) {
				if _, err := at.Take(ctx); err == nil && job > 0 {
					<-ctx.Done()
				}
				return job, 0
			})
			released := make(chan struct{})
			put, refused := 0, 0
			began := time.Now()
			ended := p.Run(func() {
				for put < 5000 {
					if !p.Put(put, false, false) {
						refused++
						break
					}
					put++
					if how == "read" && put == 3 {
						<-released
						break
					}
				}
			}, func(int) bool {
				if how != "break" {
					time.AfterFunc(time.Minute, cancel)
				}
				return how != "break"
			})
			if ended != (how != "break") {
				t.Errorf("%s: ended %v", how, ended)
			}
			if !ended {
				cancel()
				p.Drain()
			}
			took, want := time.Since(began), map[string]time.Duration{"cancel": time.Minute, "break": 0, "read": time.Minute + grace.Call}[how]
			close(released)
			synctest.Wait()
			if took != want || put > 3*queueLength || limiter.InFlight() != 0 {
				t.Errorf("%s: ended after %v with %d jobs, and %d are in flight; want %v", how, took, put, limiter.InFlight(), want)
			}
			if (refused == 1) != (how != "read") {
				t.Errorf("%s: %d calls of Put were refused", how, refused)
			}
		})
	}
}

// TestPlace checks what the limiter learns of a job: its refusals while it has its turn, and its bytes once.
func TestPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, streams := range []bool{false, true} {
			limiter := &backoff.Limiter{First: 8, Max: 8}
			l := newLane(t.Context(), Kind{Limiter: limiter, Deciders: 1, Streams: streams}, func(int, *Place) {})
			l.running, l.deciding = 1, 1
			l.counter.run = func() {}
			at := &Place{of: &l.counter}
			refuse := func() int {
				for range 20 {
					at.Refused()
				}
				time.Sleep(time.Hour)
				limiter.Start(time.Now()) // the window ends with a reply
				limiter.Ended(time.Now(), 0)
				return limiter.Limit()
			}
			before := refuse()
			if _, err := at.Take(t.Context()); err != nil || limiter.InFlight() != 1 {
				t.Errorf("%d in flight, %v", limiter.InFlight(), err)
			}
			during := refuse()
			at.Sent(1000)
			at.leave(1000)
			if after := refuse(); before != 8 || during >= before || after != during || limiter.InFlight() != 0 {
				t.Errorf("the limit is %d, %d and then %d, and %d are in flight", before, during, after, limiter.InFlight())
			}
			left := &Place{of: &l.counter}
			left.leave(0) // the worker did not wait for it
			if _, err := left.Take(t.Context()); !errors.Is(err, context.Canceled) || limiter.InFlight() != 0 {
				t.Errorf("a job that has ended: %v, and %d are in flight", err, limiter.InFlight())
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errors.ErrUnsupported)
			if _, err := (&Place{of: &l.counter}).Take(ctx); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("a context that is done: %v", err)
			}
		}
	})
}

// TestNumbersOfOpenFiles checks how many files a process uploads, and compares, for its limit of open files. They need
// at most 13 of 16 of them.
func TestNumbersOfOpenFiles(t *testing.T) {
	for _, tt := range []struct {
		openFiles                                  int
		small, large, decidingSmall, decidingLarge int
	}{
		{math.MaxInt, 1024, 64, 32, 4},
		{4096, 1024, 64, 32, 4},
		{4095, 1023, 64, 32, 4},
		{1024, 256, 32, 32, 4},
		{128, 32, 4, 16, 4},
		{64, 16, 2, 8, 2},
		{3, 1, 1, 1, 1},
	} {
		small, large := NewLimiters(tt.openFiles)
		decidingSmall, decidingLarge := Deciders(tt.openFiles)
		if small.Max != tt.small || large.Max != tt.large || decidingSmall != tt.decidingSmall || decidingLarge != tt.decidingLarge || small.First != 32 || large.First != 4 {
			t.Errorf("%d open files: %d and %d uploads, %d and %d comparisons, want %+v", tt.openFiles, small.Max, large.Max, decidingSmall, decidingLarge, tt)
		}
	}
	for openFiles := 64; openFiles < 1<<20; openFiles += openFiles / 8 {
		small, large := NewLimiters(openFiles)
		decidingSmall, decidingLarge := Deciders(openFiles)
		if need := 2*small.Max + 4*large.Max + decidingSmall + decidingLarge; need > openFiles*13/16 {
			t.Errorf("%d open files: %d are needed", openFiles, need)
		}
	}
	if n := OpenFiles(); n < 16 {
		t.Errorf("this process may open %d files", n)
	}
}
