// Package retrysim simulates many clients that retry requests to one server. It
// shows the effect of a retry policy on a service that was down. Time is
// virtual. The policies are those of package backoff: the simulation calls
// their Delay. The circuit breaker makes the decisions of backoff.Breaker with the same code.
//
// [Lookup] returns a scenario. [Run] simulates it once per policy.
// [WriteTable], [WriteJSON] and [WriteSVG] write the results. The same
// scenario, policies and seed give the same bytes.
//
// # The model
//
// A request takes no time. The server serves Capacity requests per second. It
// has a queue for the requests that it serves in a tenth of a second, and
// refuses a request if the queue is full. While it is down, it refuses every
// request. A client that was refused waits as its policy requires and retries,
// until it is served. Only the policy bidmanager stops, after five retries. A
// client that waits at a circuit breaker does not stop.
//
// Events are processed one by one, in order of time. If a policy has no jitter,
// clients that fail at the same time always retry at the same time. They are
// simulated as one event with a count.
package retrysim
