// Package backoff decides how long to wait before a request is tried again,
// when to stop trying, and which failures are worth another try. It serves any
// Google API, and depends on the standard library only.
//
// The decisions are pure: a [Policy] computes a wait from the number of the
// retry and a random number, [Status] and [Network] classify a failure, and a
// [Budget] counts what was tried. None of them looks at a clock or sleeps.
//
// # The algorithm
//
// The zero Policy is truncated exponential backoff as Google describes it in
// https://cloud.google.com/storage/docs/retry-strategy: before retry n wait
//
//	min(2^n seconds + random 0..1000 milliseconds, 32 seconds)
//
// with the random part drawn anew for every wait, so that clients which failed
// together do not come back together.
//
// # Guarantees
//
// Every wait is shorter than [Limit], one minute: whatever a Policy says, for
// every n, and whatever a Retry-After header asks for. A Policy that would wait
// longer is refused by [Policy.Validate].
package backoff
