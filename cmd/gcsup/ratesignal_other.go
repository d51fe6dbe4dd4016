//go:build !unix

package main

import "golang.org/x/time/rate"

// toggleOnSignal does nothing: the platform has no SIGUSR2.
func toggleOnSignal(*rate.Limiter, *console) (stop func()) { return func() {} }
