package main

import (
	"path/filepath"
	"sync"
	"time"

	"gcsup/internal/cli/savedrate"
	"gcsup/upload"
)

// saveRatesEvery is the time between two saves of the request rates, so that a process that is killed
// leaves them too.
const saveRatesEvery = 10 * time.Second

// rememberRates restores the request rates that earlier processes found in the last hour, and saves those of this
// process until stop is called. It saves nothing if uploads are not saved in a directory. Errors are
// details: the next process can find the rates itself.
func (f *targetFlags) rememberRates(c *connection, r *reporter, rates *upload.RequestRates) (stop func()) {
	r.totals.rates = rates
	if c.saved == nil || c.saved.shared {
		return func() {}
	}
	state, err := stateDir(f.state.dir)
	if err != nil {
		return func() {}
	}
	m := &rateMemory{dir: savedrate.New(filepath.Join(state, "requestrate"), c.endpoint), rates: rates, known: map[string]savedrate.Record{}, done: make(chan struct{})}
	for saved := range m.dir.Rates(time.Now()) {
		rates.Set(saved.Bucket, saved.PerSecond)
		m.known[saved.Bucket] = saved
		r.console.detail("at most %.0f requests per second change objects in gs://%s: it refused more %s ago",
			saved.PerSecond, saved.Bucket, formatSpan(time.Since(saved.Refused)))
	}
	for bucket, rate := range rates.All() {
		saved := m.known[bucket]
		saved.PerSecond = rate.PerSecond() // a limit is no rate that was found
		m.known[bucket] = saved
	}
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(saveRatesEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_ = m.save() // the last save reports its error
			case <-m.done:
				return
			}
		}
	})
	return func() {
		close(m.done)
		running.Wait()
		if err := m.save(); err != nil {
			r.console.detail("the request rates are not saved: %v", err)
		}
	}
}

// rateMemory saves request rates.
type rateMemory struct {
	dir   *savedrate.Dir
	rates *upload.RequestRates
	known map[string]savedrate.Record // the rates and the last 429s as they were read or saved
	done  chan struct{}
}

// save saves the rates that have changed, of buckets that answered 429 in the last hour.
func (m *rateMemory) save() (err error) {
	now := time.Now()
	for bucket, rate := range m.rates.All() {
		before := m.known[bucket]
		latest := savedrate.Record{PerSecond: rate.PerSecond(), Refused: rate.LastRefused()}
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
