// Package backoff decides how long to wait before a request is tried again,
// when to stop trying, and which failures are worth another try. It serves any
// Google API, and depends on the standard library only.
//
// A program that speaks HTTP wraps its client's transport, and any other
// operation goes through [Retry]:
//
//	client := &http.Client{Transport: &backoff.Transport{}}
//
//	rows, err := backoff.Retry(ctx, backoff.CloudStorage(), fetch, nil)
//
// # The algorithm
//
// The zero [Policy] is truncated exponential backoff as Google describes it in
// https://cloud.google.com/storage/docs/retry-strategy: before retry n wait
//
//	min(2^n seconds + random 0..1000 milliseconds, 32 seconds)
//
// with the random part drawn anew for every wait, so that clients which failed
// together do not come back together. [Named] lists the other policies.
//
// # The parts
//
// Retry and Transport are made of parts that a program with a loop of its own,
// such as an uploader, can use by themselves. A [Waiter] makes the waits: it is
// the one loop that sleeps, and Retry and Transport use it too. The rest is pure:
// a Policy computes a wait from the number of the retry and a random number,
// [Status] and [Network] classify a failure, and a [Budget] counts what was
// tried. A [Gate], which many operations share, has a clock.
//
// # Guarantees
//
// Every wait is shorter than [Limit], one minute: whatever a Policy says, for
// every n, and whatever a Retry-After header asks for. A Policy that would wait
// longer is refused by [Policy.Validate].
//
// Retrying ends: with success, with an error that waiting does not cure, or
// when the budget is spent, which only progress restores.
package backoff
