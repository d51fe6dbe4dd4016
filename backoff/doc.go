// Package backoff retries requests to Google APIs. It decides which failures to
// retry, how long to wait before each retry, and when to stop. It depends on
// the standard library only.
//
// To retry HTTP requests, use a [Transport]. To retry any other operation, call
// [Retry]:
//
//	client := &http.Client{Transport: &backoff.Transport{}}
//
//	rows, err := backoff.Retry(ctx, backoff.Policy{}, fetch, nil)
//
// # The algorithm
//
// The zero [Policy] is Google's truncated exponential backoff
// (https://cloud.google.com/storage/docs/retry-strategy). The wait before retry
// n, counted from 0, is
//
//	min(2^n seconds + random 0..1000 milliseconds, 32 seconds)
//
// Every wait has a new random part, so that clients that failed at the same
// time do not retry at the same time. [Named] lists the other policies.
//
// # The parts
//
// A program with its own retry loop, such as an uploader, classifies each
// failure with [Classify], [Status] or [Network]. It calls a [Waiter] before each
// retry. The Waiter computes the wait from its [Policy], counts failures against
// its [Budget], and shares a [Breaker], a circuit breaker, with all other operations on the endpoint.
//
// A program that makes many requests decides with a [Limiter] how many are in flight, and
// with a [Rate] how many start per second after a 429.
//
// # Guarantees
//
// Every backoff is shorter than one minute, see [Limit]. No Policy, number of failures or
// Retry-After header makes it longer. [Policy.Validate] refuses a Policy with longer waits. A
// [Transport] waits for a [Rate] for less than Limit, too. The waits that [Rate.Reserve]
// returns, and waits for a [Breaker], may be longer.
//
// Without progress, retrying always ends: with success, with a permanent error, when the context
// is done, or when the budget is spent. Only progress restores the budget.
//
// # Errors
//
// An [Error] describes why Retry or Transport stopped. It wraps [ErrPermanent],
// [ErrRetriesExhausted] or the cause of the context's end, and the last error of
// the operation.
package backoff
