//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/time/rate"
)

// toggleOnSignal switches a limiter between its limit and none at each SIGUSR2,
// until stop is called.
func toggleOnSignal(limiter *rate.Limiter, c *console) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	done := make(chan struct{})
	go func() {
		limit := limiter.Limit()
		for {
			select {
			case <-done:
				return
			case <-signals:
			}
			if limiter.Limit() == rate.Inf {
				limiter.SetLimit(limit)
				c.message("SIGUSR2: the rate is limited to %s/s", bytesText(int64(limit)))
			} else {
				limiter.SetLimit(rate.Inf)
				c.message("SIGUSR2: the rate is not limited")
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}
