package backoff

import "time"

// steadyClock is the time that has passed, as the sum of the steps forward of the times that
// it gets. A clock that is set back therefore delays nothing. A step forward counts as a day at
// most, so that the sum does not overflow.
type steadyClock struct {
	last time.Time
	past time.Duration // since the first time
}

// read returns the time that has passed until now.
func (c *steadyClock) read(now time.Time) time.Duration {
	if !c.last.IsZero() {
		c.past += min(max(now.Sub(c.last), 0), 24*time.Hour)
	}
	c.last = now
	return c.past
}
