package backoff

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Limit is the bound of every backoff of this package: each is strictly
// shorter.
const Limit = time.Minute

// longest replaces a wait of Limit or more, which a header or an unchecked
// Policy may ask for. It is a second less than Limit because a timer may fire
// late.
const longest = Limit - time.Second

// The defaults are those of Google's retry strategy,
// https://cloud.google.com/storage/docs/retry-strategy. Its page gives 32 s or
// 64 s as the usual maximum; 64 s is beyond Limit.
const (
	defaultInitial    = time.Second
	defaultMultiplier = 2
	defaultMaximum    = 32 * time.Second
	additiveSpread    = 1000 * time.Millisecond
)

// A Policy computes how long to wait before each retry. The zero value is
// Google's truncated exponential backoff: 1 s, doubled for every retry, plus a
// random 0..1000 ms, at most 32 s.
//
// The methods of a Policy are pure functions, so that any number of goroutines
// may share it.
type Policy struct {
	// Initial is the wait before retry 0, without jitter. 0 means 1 s.
	Initial time.Duration

	// Multiplier is the factor by which the wait grows with every retry. 0
	// means 2. It must be 1 or more; 1 makes all waits equal.
	Multiplier float64

	// Maximum is the longest wait, jitter included. 0 means 32 s. It must be
	// shorter than Limit.
	Maximum time.Duration

	// Jitter is the random part of the wait. The zero value adds 0..1000 ms.
	Jitter Jitter
}

// Jitter is the formula by which a random number changes a wait. In the
// formulas below, base is min(Initial * Multiplier^n, Maximum) and random is in
// [0, 1).
type Jitter int

const (
	// AdditiveJitter waits min(Initial * Multiplier^n + random * 1000 ms,
	// Maximum): https://cloud.google.com/storage/docs/retry-strategy.
	AdditiveJitter Jitter = iota

	// NoJitter waits base. Clients that fail at the same time retry at the same
	// time. It is provided for comparison.
	NoJitter

	// FullJitter waits random * base:
	// https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
	FullJitter

	// EqualJitter waits base/2 + random * base/2. Same source as FullJitter.
	EqualJitter

	// ScaledJitter waits min(base * (0.5 + random), Maximum), which is base
	// plus or minus 50%.
	ScaledJitter

	// DecorrelatedJitter follows the series w = min(random between Initial and
	// Multiplier * (the previous wait), Maximum), which starts from Initial.
	// Same source as FullJitter, which sets Multiplier to 3.
	//
	// The series needs the previous wait. Delay has no memory. It derives the earlier
	// waits of a series from its random number. Each wait has the distribution of the
	// n-th wait of the series; for n over 64, that of n = 64, because the distribution
	// hardly changes after it. A caller that always passes the same random number gets
	// one series.
	DecorrelatedJitter
)

var jitterNames = [...]string{
	AdditiveJitter:     "additive",
	NoJitter:           "none",
	FullJitter:         "full",
	EqualJitter:        "equal",
	ScaledJitter:       "scaled",
	DecorrelatedJitter: "decorrelated",
}

// String returns the name of j in lower case, such as "additive".
func (j Jitter) String() string {
	if j < 0 || int(j) >= len(jitterNames) {
		return fmt.Sprintf("Jitter(%d)", int(j))
	}
	return jitterNames[j]
}

// Validate returns an error if p could wait Limit or longer, or if one of its
// fields is out of range.
func (p Policy) Validate() error {
	switch {
	case p.Initial < 0:
		return fmt.Errorf("backoff: initial wait %v is negative", p.Initial)
	case p.Initial >= Limit:
		return fmt.Errorf("backoff: initial wait %v must be shorter than %v", p.Initial, Limit)
	case p.Maximum < 0:
		return fmt.Errorf("backoff: maximum wait %v is negative", p.Maximum)
	case p.Maximum >= Limit:
		return fmt.Errorf("backoff: maximum wait %v must be shorter than %v", p.Maximum, Limit)
	case math.IsNaN(p.Multiplier) || math.IsInf(p.Multiplier, 0):
		return errors.New("backoff: multiplier is not a finite number")
	case p.Multiplier != 0 && p.Multiplier < 1:
		return fmt.Errorf("backoff: multiplier %v is less than 1", p.Multiplier)
	case p.Jitter < 0 || int(p.Jitter) >= len(jitterNames):
		return fmt.Errorf("backoff: unknown jitter %d", int(p.Jitter))
	}
	return nil
}

// Delay returns the wait before retry n; n is 0 for the first retry. random is
// a number in [0, 1). Use a new one for every wait.
//
// The result is at least 0 and less than Limit, for any n and any p. A field
// that Validate refuses is replaced by its default. A wait that is too long is
// replaced by 59 s.
func (p Policy) Delay(n int, random float64) time.Duration {
	p = p.withDefaults()
	random = clamp(random)
	if p.Jitter == DecorrelatedJitter {
		return p.decorrelated(n, random)
	}

	// Floating point does not overflow: a huge power is +Inf, and min returns
	// Maximum instead. The conversion of a product keeps the compiler from
	// fusing it with the following addition, so that every machine computes the
	// same result.
	limit := float64(p.Maximum)
	wait := float64(p.Initial) * math.Pow(p.Multiplier, float64(max(n, 0)))
	switch p.Jitter {
	case FullJitter:
		wait = min(wait, limit) * random
	case EqualJitter:
		wait = min(wait, limit) * (1 + random) / 2
	case ScaledJitter:
		wait = min(wait, limit) * (0.5 + random)
	case AdditiveJitter:
		wait += float64(float64(additiveSpread) * random)
	}
	return time.Duration(min(wait, limit))
}

// Wait returns the wait before retry n if the server asked for a wait of
// retryAfter, see [RetryAfter]; 0 means that it did not. The result is the
// longer of Delay and retryAfter. A retryAfter of Limit or more counts as 59 s,
// because a server that is still unavailable then sends another Retry-After.
func (p Policy) Wait(n int, random float64, retryAfter time.Duration) time.Duration {
	return max(p.Delay(n, random), min(retryAfter, longest))
}

// longestDelay returns the upper bound of Delay for retry n.
func (p Policy) longestDelay(n int) time.Duration {
	if p.Jitter != DecorrelatedJitter {
		return p.Delay(n, 1)
	}
	// The longest series takes the upper end of its range at every step.
	p.Jitter = NoJitter
	p.Initial = time.Duration(min(float64(p.withDefaults().Initial)*p.withDefaults().Multiplier, float64(longest)))
	return p.Delay(n, 0)
}

// withDefaults returns p with zero and unusable fields replaced.
func (p Policy) withDefaults() Policy {
	if p.Initial <= 0 {
		p.Initial = defaultInitial
	}
	if !(p.Multiplier >= 1) { // true for NaN too
		p.Multiplier = defaultMultiplier
	}
	if p.Maximum <= 0 {
		p.Maximum = defaultMaximum
	}
	if p.Maximum >= Limit {
		p.Maximum = longest
	}
	if p.Jitter < 0 || int(p.Jitter) >= len(jitterNames) {
		p.Jitter = AdditiveJitter
	}
	return p
}

// clamp returns the number in [0, 1) that is nearest to random, or 0 for NaN.
func clamp(random float64) float64 {
	if !(random >= 0) {
		return 0
	}
	return min(random, math.Nextafter(1, 0))
}

// decorrelated returns wait n of the series that random selects.
func (p Policy) decorrelated(n int, random float64) time.Duration {
	// After a few steps the wait hardly depends on the first ones, so that this
	// many steps are enough for a large n.
	const enough = 64

	limit, lowest := float64(p.Maximum), float64(p.Initial)
	wait := lowest
	seed := math.Float64bits(random)
	for range min(max(n, 0), enough) + 1 {
		seed += 0x9e3779b97f4a7c15
		u := float64(mix(seed)>>11) / (1 << 53)
		wait = min(lowest+float64(u*(float64(p.Multiplier*wait)-lowest)), limit)
	}
	return time.Duration(wait)
}

// mix is the output function of SplitMix64
// (https://prng.di.unimi.it/splitmix64.c). It turns a counter into independent
// numbers.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
