package main

import (
	"path/filepath"
	"sync"
	"time"

	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/savedrate"
	"gcsup/upload"
)

// saveRatesEvery is the time between two saves of the request rate of a bucket, so that a process that is killed
// leaves it too. The first save is earlier.
const saveRatesEvery = 10 * time.Second

// rememberRates restores the request rates that earlier processes found in the last hour, and saves those of this
// process until stop is called. It saves nothing if uploads are not saved in a directory. Errors are
// details: the next process can find the rates itself.
func (f *targetFlags) rememberRates(c *connection, r *reporter, rates *upload.RequestRates) (stop func()) {
	r.totals.Rates = rates
	if c.saved == nil || c.saved.shared {
		return func() {}
	}
	state, err := stateDir(f.state.dir)
	if err != nil {
		return func() {}
	}
	m := newRateMemory(savedrate.New(filepath.Join(state, "requestrate"), c.endpoint), rates)
	for bucket, saved := range m.known {
		r.console.Detail("at most %.0f requests per second change objects in gs://%s: it refused more %s ago",
			saved.PerSecond, bucket, readable.Span(time.Since(saved.Refused)))
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_ = m.save(saveRatesEvery) // the last save reports its error
			case <-done:
				return
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
		if err := m.save(0); err != nil {
			r.console.Detail("the request rates are not saved: %v", err)
		}
	}
}

// rateMemory keeps the request rates of a run in a directory.
type rateMemory struct {
	dir   *savedrate.Dir
	rates *upload.RequestRates
	known map[string]savedrate.BucketRate // the rates and the last 429s as they were read or saved, by bucket
}

// newRateMemory restores the rates in dir.
func newRateMemory(dir *savedrate.Dir, rates *upload.RequestRates) *rateMemory {
	m := &rateMemory{dir, rates, map[string]savedrate.BucketRate{}}
	refused := map[string]time.Time{}
	for saved := range dir.Rates(time.Now()) {
		rates.Set(saved.Bucket, saved.PerSecond)
		refused[saved.Bucket] = saved.Refused
	}
	for bucket, rate := range rates.All() { // a limit may be lower than what was saved, and is not saved itself
		m.known[bucket] = savedrate.BucketRate{PerSecond: rate.PerSecond(), Refused: refused[bucket]}
	}
	return m
}

// save saves the rates that have changed, of buckets that answered 429 in the last hour. It saves the rate of a
// bucket at most once in that time.
func (m *rateMemory) save(every time.Duration) (err error) {
	now := time.Now()
	for bucket, rate := range m.rates.All() {
		before := m.known[bucket]
		if now.Sub(before.Saved) < every {
			continue
		}
		latest := savedrate.BucketRate{PerSecond: rate.PerSecond(), Refused: rate.LastRefused(), Saved: now}
		if before.Refused.After(latest.Refused) {
			latest.Refused = before.Refused
		}
		if now.Sub(latest.Refused) >= savedrate.Lifetime || latest.PerSecond == before.PerSecond && latest.Refused.Equal(before.Refused) {
			continue
		}
		if failed := m.dir.Save(bucket, latest.PerSecond, latest.Refused, now); failed != nil {
			err = failed
			continue
		}
		m.known[bucket] = latest
	}
	return err
}
