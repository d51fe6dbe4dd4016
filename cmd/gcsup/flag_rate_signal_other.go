//go:build !unix

package main

import "gcsup/upload"

// toggleOnSignal does nothing: the platform has no SIGUSR2.
func toggleOnSignal(*upload.RateLimit, *console) (stop func()) { return func() {} }
