package backoff_test

import (
	"math"
	"testing"
	"time"

	"gcsup/backoff"
)

func TestRetries(t *testing.T) {
	const mib, gib, tib = 1 << 20, 1 << 30, 1 << 40
	tests := []struct {
		atStake int64
		retries int
		about   time.Duration // total wait with the zero Policy
	}{
		{math.MinInt64, 5, 33 * time.Second},
		{-1, 5, 33 * time.Second},
		{0, 5, 33 * time.Second},
		{8 * mib, 5, 33 * time.Second},
		{8*mib + 1, 5, 33 * time.Second},
		{64 * mib, 10, 3*time.Minute + 14*time.Second},
		{1 * gib, 25, 11 * time.Minute},
		{100 * gib, 117, time.Hour},
		{5 * tib, 434, 3*time.Hour + 49*time.Minute},
		{math.MaxInt64, 51606, 458*time.Hour + 42*time.Minute},
	}
	for _, test := range tests {
		retries := backoff.Retries(test.atStake)
		if retries != test.retries {
			t.Errorf("Retries(%d) = %d, want %d", test.atStake, retries, test.retries)
		}
		var total time.Duration
		for n := range retries {
			total += backoff.Policy{}.Delay(n, 0.5)
		}
		if diff := (total - test.about).Abs(); diff > test.about/50+time.Second {
			t.Errorf("total wait of %d retries = %v, documented as %v", retries, total, test.about)
		}
	}
}

func TestBudgetNext(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name       string
		budget     backoff.Budget
		failures   int
		retryAfter time.Duration
		elapsed    time.Duration
		wait       time.Duration
		ok         bool
	}{
		{"nothing failed yet", backoff.Budget{}, 0, 0, 0, 1 * s, true},
		{"first", backoff.Budget{}, 1, 0, 0, 1 * s, true},
		{"fifth", backoff.Budget{}, 5, 0, 0, 16 * s, true},
		{"sixth", backoff.Budget{}, 6, 0, 0, 32 * s, false},
		{"elapsed does not matter without For", backoff.Budget{}, 1, 0, time.Hour, 1 * s, true},
		{"bytes at stake, last", backoff.Budget{AtStake: 1 << 30}, 25, 0, 0, 32 * s, true},
		{"bytes at stake, spent", backoff.Budget{AtStake: 1 << 30}, 26, 0, 0, 32 * s, false},
		{"retries override bytes at stake", backoff.Budget{Retries: 7, AtStake: 1 << 30}, 8, 0, 0, 32 * s, false},
		{"one retry, last", backoff.Budget{Retries: 1}, 1, 0, 0, 1 * s, true},
		{"one retry, spent", backoff.Budget{Retries: 1}, 2, 0, 0, 2 * s, false},
		{"no retry", backoff.Budget{Retries: -1}, 1, 0, 0, 1 * s, false},
		{"retry-after", backoff.Budget{}, 1, 7 * s, 0, 7 * s, true},
		{"for, fits exactly", backoff.Budget{For: 10 * s}, 1, 0, 9 * s, 1 * s, true},
		{"for, wait exceeds it", backoff.Budget{For: 10 * s}, 1, 0, 9*s + 1, 1 * s, false},
		{"for, long past", backoff.Budget{For: 10 * s}, 1, 0, 20 * s, 1 * s, false},
		{"for, retry-after exceeds it", backoff.Budget{For: 10 * s}, 1, 11 * s, 0, 11 * s, false},
		{"for, shorter than any wait", backoff.Budget{For: 1}, 1, 0, 0, 1 * s, false},
		{"for allows more than the retries", backoff.Budget{For: time.Hour}, 50, 0, time.Minute, 32 * s, true},
		{"for overrides retries", backoff.Budget{For: time.Hour, Retries: -1}, 1, 0, 0, 1 * s, true},
		{"huge for", backoff.Budget{For: math.MaxInt64}, 1000, 0, 1000 * time.Hour, 32 * s, true},
	}
	for _, test := range tests {
		for range test.failures {
			test.budget.Failed()
		}
		if wait, ok := test.budget.Next(backoff.Policy{}, 0, test.retryAfter, test.elapsed); wait != test.wait || ok != test.ok {
			t.Errorf("%s: Next = %v, %v, want %v, %v", test.name, wait, ok, test.wait, test.ok)
		}
	}
}
