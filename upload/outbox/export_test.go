package outbox

// WithoutNotifications makes the outbox find files only by scans: a goroutine that waits for the system
// keeps the clock of a bubble from advancing.
func (o *Outbox) WithoutNotifications() { o.watch = false }

// WithoutLinkProtection makes the outbox behave as on a system that lets users link any file.
func (o *Outbox) WithoutLinkProtection() { o.linksProtected = false }
