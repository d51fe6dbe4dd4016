//go:build !unix

package main

import (
	"gcsup/internal/cli/screen"
	"gcsup/upload"
)

// toggleOnSignal does nothing: the platform has no SIGUSR2.
func toggleOnSignal(*upload.RateLimit, *screen.Console) (stop func()) { return func() {} }
