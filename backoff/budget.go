package backoff

import (
	"math"
	"time"
)

// Retries returns how many consecutive retries without progress are allowed. atStake is
// the number of bytes that would be lost, or not sent, without further retries.
//
// The result is 5 for up to 8 MiB and 5 * cbrt(atStake / 8 MiB), rounded, for more.
// The total wait is half a minute for a small file, and hours for the largest object
// that Cloud Storage accepts. With the zero Policy the waits without progress are
//
//	at stake   retries   waits for
//	8 MiB            5   33 s
//	1 GiB           25   11 min
//	100 GiB        117   1 h
//	5 TiB          434   3 h 49 min
//
// Progress resets the count.
func Retries(atStake int64) int {
	const short, retries = 8 << 20, 5
	if atStake <= short {
		return retries
	}
	return int(math.Round(retries * math.Cbrt(float64(atStake)/short)))
}

// A Budget decides when to stop retrying. It counts the requests that failed
// since the last progress. Progress is work of the server that need not be
// repeated, such as newly committed bytes. A reply alone is not progress.
//
// The zero value allows 5 retries without progress.
//
// A [Waiter] that is blocked by a [Breaker] uses no retries. Its wait ends when For
// has passed. If For is 0, the wait ends when the breaker has blocked it for twice
// the longest total wait of its retries, which is 72 s for 5 retries. Progress
// resets that time too.
type Budget struct {
	// Retries is the number of retries allowed without progress: 5 retries are 6
	// attempts. 0 means Retries(AtStake); a negative number allows no retry.
	Retries int

	// AtStake is the number of bytes that would be lost or left undone by
	// stopping. It is used if Retries is 0.
	AtStake int64

	// For, if positive, replaces Retries. The operation is retried for this long
	// without progress. It stops earlier if the next wait would exceed For.
	For time.Duration

	// Both fields count from the last progress.
	failures int           // requests that failed
	blocked  time.Duration // how long a Breaker blocked the operation
}

// failed records that a request failed.
func (b *Budget) failed() { b.failures++ }

// progress records progress. It restores the whole budget, and the next wait is
// the shortest again.
func (b *Budget) progress() { b.failures, b.blocked = 0, 0 }

// next returns the wait before the next retry, or false if the budget is spent.
// random and retryAfter are those of [Policy.Wait]. elapsed is the time since
// the last progress, or since the start if there was none.
//
// The budget is spent if the failures outnumber the retries. If For is set, the
// budget is spent if elapsed plus the wait exceeds For.
func (b *Budget) next(p Policy, random float64, retryAfter, elapsed time.Duration) (time.Duration, bool) {
	wait := p.Wait(b.failures-1, random, retryAfter)
	if b.For > 0 {
		return wait, elapsed <= b.For-wait
	}
	return wait, b.failures <= b.retries()
}

func (b *Budget) retries() int {
	if b.Retries != 0 {
		return b.Retries
	}
	return Retries(b.AtStake)
}

// blockable returns how much longer a Breaker may block the operation: the rest of
// For, or of twice the longest total wait of its retries.
func (b *Budget) blockable(p Policy, elapsed time.Duration) time.Duration {
	if b.For > 0 {
		return b.For - elapsed
	}
	return 2*p.LongestTotal(b.retries()) - b.blocked
}

// LongestTotal returns the longest time that a number of retries can wait in total. For the number
// that [Retries] returns, it is how long a Budget without For lasts, if the server asks for no longer
// waits.
func (p Policy) LongestTotal(retries int) time.Duration {
	var total time.Duration
	for n := range retries {
		wait := p.longestDelay(n)
		if wait == p.withDefaults().Maximum {
			return total + time.Duration(retries-n)*wait
		}
		total += wait
	}
	return total
}
