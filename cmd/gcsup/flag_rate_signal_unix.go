//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/screen"
	"gcsup/upload"
)

// toggleOnSignal switches rate between its limit and none at each SIGUSR2,
// until stop is called.
func toggleOnSignal(rate *upload.RateLimit, c *screen.Console) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR2)
	done := make(chan struct{})
	go func() {
		limit := rate.Limit()
		for {
			select {
			case <-done:
				return
			case <-signals:
			}
			if rate.Limit() == upload.Unlimited {
				rate.SetLimit(limit)
				c.Message("SIGUSR2: the rate is limited to %s/s", readable.Bytes(limit))
			} else {
				rate.SetLimit(upload.Unlimited)
				c.Message("SIGUSR2: the rate is not limited")
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}
