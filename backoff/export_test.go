package backoff

import "time"

var ReplyError = statusError

func (b *Budget) Failed() { b.failed() }

func (b *Budget) Next(p Policy, random float64, retryAfter, elapsed time.Duration) (time.Duration, bool) {
	return b.next(p, random, retryAfter, elapsed)
}
