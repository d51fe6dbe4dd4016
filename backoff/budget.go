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
// A [Waiter] that a [Gate] holds spends no tries. Its wait ends when For is
// over. Without For it ends when the gate has held it for twice the longest time
// that its tries can wait in all, which is 72 s for 5 tries. Progress restores
// that too.
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

	// Both are since the last progress.
	failures int           // requests that failed
	held     time.Duration // how long a Gate held the operation
}

// Failed notes that a request failed.
func (b *Budget) Failed() { b.failures++ }

// Failures returns the number of requests that failed since the last progress.
func (b *Budget) Failures() int { return b.failures }

// Progress notes that progress was made. The whole budget is there again, and
// waits start from the shortest again.
func (b *Budget) Progress() { b.failures, b.held = 0, 0 }

// Next returns the wait before the next retry, or false if the budget is
// spent. random and retryAfter are as for [Policy.Wait]. elapsed is the time
// since the last progress, or since the start if there was none yet.
//
// The budget is spent when the failures outnumber the tries, or, with For, when
// elapsed and the wait exceed it.
func (b *Budget) Next(p Policy, random float64, retryAfter, elapsed time.Duration) (time.Duration, bool) {
	wait := p.Wait(b.failures-1, random, retryAfter)
	if b.For > 0 {
		return wait, elapsed <= b.For-wait
	}
	return wait, b.failures <= b.tries()
}

func (b *Budget) tries() int {
	if b.Tries != 0 {
		return b.Tries
	}
	return Tries(b.AtStake)
}

// holdable returns how much longer a Gate may hold the operation: until For is
// over, or in all for twice the longest time that its tries can wait.
func (b *Budget) holdable(p Policy, elapsed time.Duration) time.Duration {
	if b.For > 0 {
		return b.For - elapsed
	}
	return 2*p.longestTotal(b.tries()) - b.held
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
