package main

import (
	"testing"
	"testing/synctest"
	"time"

	"gcsup/internal/cli/savedrate"
	"gcsup/internal/require"
	"gcsup/upload"
)

// savedRate returns the rate of a bucket in a directory, or 0.
func savedRate(path, bucket string) float64 {
	for r := range savedrate.New(path, "http://e").Rates(time.Now()) {
		if r.Bucket == bucket {
			return r.PerSecond
		}
	}
	return 0
}

// TestRateMemory checks when request rates are saved, and that the next process begins with them.
func TestRateMemory(t *testing.T) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		rates := new(upload.RequestRates)
		m := newRateMemory(savedrate.New(path, "http://e"), rates)
		save := func(every time.Duration) {
			t.Helper()
			require.NoError(t, m.save(every))
		}
		rates.Limit(500)
		rates.Set("limited", 500)
		rates.Set("refused", 300)
		save(0)
		if savedRate(path, "limited") > 0 || savedRate(path, "refused") > 0 {
			t.Error("rates are saved without a 429")
		}
		refuse := func() float64 {
			for bucket, rate := range rates.All() {
				if bucket == "refused" {
					rate.Accepted(time.Now())
					time.Sleep(2 * time.Second)
					rate.Refused(time.Now())
					return rate.PerSecond()
				}
			}
			return 0
		}
		first := refuse()
		save(saveRatesEvery)
		if got := savedRate(path, "refused"); got != first || first >= 300 || savedRate(path, "limited") > 0 {
			t.Errorf("saved %v after the first 429, want %v", got, first)
		}
		second := refuse()
		save(saveRatesEvery)
		if got := savedRate(path, "refused"); got != first {
			t.Errorf("saved %v two seconds later, want still %v", got, first)
		}
		time.Sleep(saveRatesEvery)
		save(saveRatesEvery)
		if got := savedRate(path, "refused"); got != second || second >= first {
			t.Errorf("saved %v ten seconds later, want %v", got, second)
		}
		last := refuse()
		save(0)
		if got := savedRate(path, "refused"); got != last {
			t.Errorf("saved %v at the end, want %v", got, last)
		}

		// A lower limit of another process is not saved as what the bucket accepts.
		limited := new(upload.RequestRates)
		limited.Limit(5)
		if err := newRateMemory(savedrate.New(path, "http://e"), limited).save(0); err != nil || savedRate(path, "refused") != last {
			t.Errorf("saved %v after a run with a limit, want %v: %v", savedRate(path, "refused"), last, err)
		}

		// The next process has the rate. If it gets no 429, the hour still ends after the last one.
		time.Sleep(40 * time.Minute)
		rates = new(upload.RequestRates)
		m = newRateMemory(savedrate.New(path, "http://e"), rates)
		for bucket, rate := range rates.All() {
			if bucket != "refused" || rate.PerSecond() != last {
				t.Errorf("the next process begins with %v per second for %s, want %v", rate.PerSecond(), bucket, last)
			}
			for range 1000 {
				rate.Accepted(time.Now())
			}
		}
		save(0)
		if got := savedRate(path, "refused"); got <= last {
			t.Errorf("saved %v after 1,000 more requests, want more than %v", got, last)
		}
		time.Sleep(21 * time.Minute)
		if got := savedRate(path, "refused"); got > 0 {
			t.Errorf("the rate is %v an hour after the last 429", got)
		}
	})
}
