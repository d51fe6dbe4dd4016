package outbox

import "gcsup/backoff"

// WithoutNotifications makes the outbox find files only by scans: a goroutine that waits for the system
// keeps the clock of a bubble from advancing.
func (o *Outbox) WithoutNotifications() { o.watch = false }

// WithoutLinkProtection makes the outbox behave as on a system that lets users link any file.
func (o *Outbox) WithoutLinkProtection() { o.linksProtected = false }

// Limited returns o with limiters of small and of large files.
func Limited(o Options, small, large *backoff.Limiter) Options {
	o.small, o.large = small, large
	return o
}
