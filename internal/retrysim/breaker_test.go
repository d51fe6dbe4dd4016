package retrysim

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/backoff"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

// TestBreakerModel compares the times of the requests of clients at a backoff.Breaker
// with those of the simulation.
func TestBreakerModel(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates many clients")
	}
	for _, name := range []string{"exponential", "none"} {
		policy, err := backoff.Named(name) // no jitter, so that the waits are equal
		require.NoError(t, err)
		for seed := range uint64(testsize.Full(20, 8)) {
			for _, s := range []Scenario{
				{Outage: 700 * time.Millisecond},
				{Outage: 10 * time.Second},
				{Outage: 5 * time.Minute},
				{Outage: 20 * time.Second, start: 5 * time.Second},
			} {
				// Without refusals after the outage, the order of events at the
				// same time does not matter.
				s.Clients, s.group, s.Capacity, s.parts, s.pause, s.spread = 32, 32, 1000, 3, 2*time.Second, 20*time.Second
				r, err := newRun(s, name, sharedBreaker, seed)
				require.NoError(t, err)
				got, err := r.play(t.Context())
				require.NoError(t, err)
				want := realBreaker(t, s, policy, seed)
				if !slices.Equal(got.Load, want) {
					t.Fatalf("%s, seed %d, %+v: load of the simulation\n%v\nwant that of the breaker\n%v", name, seed, s, got.Load, want)
				}
			}
		}
	}
}

// realBreaker runs a scenario with goroutines and a backoff.Breaker, and returns the
// load in each second.
func realBreaker(t *testing.T, s Scenario, policy backoff.Policy, seed uint64) (load []Second) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		server := newServer(s)
		var mu sync.Mutex
		request := func() bool {
			mu.Lock()
			defer mu.Unlock()
			now := time.Since(start)
			for len(load) <= int(now/time.Second) {
				load = append(load, Second{Capacity: int64(s.Capacity)})
			}
			served := server.admit(int64(now), 1)
			load[now/time.Second].Requests++
			load[now/time.Second].Served += served
			return served > 0
		}
		var shared backoff.Breaker
		random := rand.New(rand.NewPCG(seed, 0))
		var wg sync.WaitGroup
		for range s.Clients {
			first := time.Duration(random.Int64N(int64(s.spread)))
			wg.Go(func() {
				time.Sleep(first)
				w := backoff.Waiter{Breaker: &shared, Policy: policy, Budget: backoff.Budget{For: 24 * time.Hour}}
				defer w.Close()
				for left := s.parts; left > 0; {
					if request() {
						w.Succeeded()
						w.Progress()
						if left--; left > 0 {
							time.Sleep(s.pause)
						}
					} else if err := w.Wait(t.Context(), backoff.Failure{}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
	return load
}
