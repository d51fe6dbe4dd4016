package engine

import (
	"math"
	"time"
)

// byteBucket is a token bucket of bytes. It has no clock: its methods get the time, which
// must not decrease.
//
// Bytes pass if the debt for earlier bytes is paid, and are then added to the debt. Time
// pays it at the rate. Neither the debt nor the credit for unused time is more than a
// tick, so that a change of the rate takes effect soon.
type byteBucket struct {
	rate int64     // bytes per second; 0 lets nothing pass
	debt float64   // bytes; a negative debt is a credit
	at   time.Time // when debt and held were computed

	waiting bool          // bytes wait
	held    time.Duration // total time for which bytes waited
}

// bytesPerTick returns the bytes of 1/16 s at a rate, and at least 1. Bytes should pass in reads
// of at most a tick. A credit of that length compensates for timers that fire late.
func bytesPerTick(rate int64) int64 { return max(rate/16, 1) }

// indefinitely is the wait while the rate is 0.
const indefinitely = time.Duration(math.MaxInt64)

// advance updates the debt to the time now.
func (b *byteBucket) advance(now time.Time) {
	elapsed := now.Sub(b.at)
	if b.waiting {
		b.held += elapsed
	}
	b.debt = max(b.debt-float64(b.rate)*elapsed.Seconds(), -float64(bytesPerTick(b.rate)))
	b.at = now
}

// pass lets n bytes pass and returns 0, or returns how long they must wait.
func (b *byteBucket) pass(n int, now time.Time) time.Duration {
	b.advance(now)
	b.waiting = b.rate == 0 || b.debt > 0 && b.rate != Unlimited
	switch {
	case !b.waiting:
		// A read that began at a higher rate may have more than the bytes of a tick.
		b.debt = min(b.debt+float64(n), float64(bytesPerTick(b.rate)))
		return 0
	case b.rate == 0:
		return indefinitely
	}
	return time.Duration(math.Ceil(b.debt / float64(b.rate) * float64(time.Second)))
}

// leave records that no bytes wait any longer.
func (b *byteBucket) leave(now time.Time) {
	b.advance(now)
	b.waiting = false
}

// setRate changes the rate, in bytes per second. A rate of 0 keeps the debt.
func (b *byteBucket) setRate(rate int64, now time.Time) {
	b.advance(now)
	b.rate = rate
	if rate > 0 {
		b.debt = min(b.debt, float64(bytesPerTick(rate)))
	}
}
