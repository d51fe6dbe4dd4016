package backoff

import (
	"math"
	"time"
)

// Tries returns how many times in a row a request may be retried without
// progress, when atStake bytes would be lost or left undone by giving up.
//
// It is 5 up to 8 MiB, the short upload, and 5 * cbrt(atStake / 8 MiB) beyond,
// rounded: whoever has more to lose waits longer, from half a minute for a
// small file to hours for the largest object that Cloud Storage takes. With
// the zero Policy that is
//
//	at stake   tries   waits for
//	8 MiB          5   33 s
//	1 GiB         25   11 min
//	100 GiB      117   1 h
//	5 TiB        434   3 h 49 min
//
// without progress; progress starts the count anew.
func Tries(atStake int64) int {
	const short, tries = 8 << 20, 5
	if atStake <= short {
		return tries
	}
	return int(math.Round(tries * math.Cbrt(float64(atStake)/short)))
}

// A Budget decides when to stop. It counts what failed since the last
// progress. Progress is something the server did that will not have to be done
// again, such as newly committed bytes; an answer alone is none.
//
// The zero value allows 5 retries without progress. A Budget holds no clock
// and is for one goroutine.
//
// [Waiter] is the loop around a Budget.
type Budget struct {
	// Tries is the number of retries allowed without progress.
	// 0 means Tries(AtStake), a negative number none.
	Tries int

	// AtStake is the number of bytes that giving up would lose or leave
	// undone. It is used when Tries is 0.
	AtStake int64

	// For, when positive, replaces Tries: go on for this long without
	// progress, and stop early when the next wait would not fit.
	For time.Duration

	// All three are since the last progress.
	failures  int           // requests that failed
	wait      time.Duration // the wait that Next granted last
	throttled time.Duration // sum of the waits after which no token was left
}

// Failed notes that a request failed.
func (b *Budget) Failed() { b.failures++ }

// Failures returns the number of requests that failed since the last progress.
func (b *Budget) Failures() int { return b.failures }

// Progress notes that progress was made. The whole budget is there again, and
// waits start from the shortest again.
func (b *Budget) Progress() { b.failures, b.wait, b.throttled = 0, 0, 0 }

// Throttled notes that the wait which Next granted is over, but that
// [Throttle.Allow] had no token. It costs no try, as nothing was tried.
func (b *Budget) Throttled() { b.throttled += b.wait }

// Next returns the wait before the next retry, or false if the budget is
// spent. random and retryAfter are as for [Policy.Wait]; pass a retryAfter once,
// not again after Throttled. elapsed is the time since the last progress, or
// since the start if there was none yet.
//
// The budget is spent when the failures outnumber the tries, or, with For, when
// elapsed and the wait exceed it. So that a process whose token bucket stays
// empty ends too, it is also spent when the waits that ended Throttled exceed
// twice the longest time its tries could have waited in all.
func (b *Budget) Next(p Policy, random float64, retryAfter, elapsed time.Duration) (time.Duration, bool) {
	b.wait = p.Wait(b.failures-1, random, retryAfter)
	if b.For > 0 {
		return b.wait, elapsed <= b.For-b.wait
	}
	tries := b.Tries
	if tries == 0 {
		tries = Tries(b.AtStake)
	}
	if b.failures > tries {
		return b.wait, false
	}
	return b.wait, b.throttled == 0 || b.throttled+b.wait <= 2*p.longestTotal(tries)
}

// longestTotal returns the most that tries retries can wait in all.
func (p Policy) longestTotal(tries int) time.Duration {
	var total time.Duration
	for n := range tries {
		wait := p.longestDelay(n)
		if wait == p.withDefaults().Maximum {
			return total + time.Duration(tries-n)*wait
		}
		total += wait
	}
	return total
}
