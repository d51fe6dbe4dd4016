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
		step := now.Sub(c.last)
		if step < 0 && monotonic(now) && monotonic(c.last) {
			// Another goroutine read the clock later and came first. Its time has been counted.
			return c.past
		}
		c.past += min(max(step, 0), 24*time.Hour)
	}
	c.last = now
	return c.past
}

// monotonic reports whether t has a reading of the monotonic clock, which is not set back.
func monotonic(t time.Time) bool { return t != t.Round(0) }
