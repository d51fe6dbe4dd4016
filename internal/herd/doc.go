// Package herd simulates many clients that retry against one server, to show
// what a retry policy does to a service that was down. Time is virtual, and the
// policies are those of package backoff: the simulation calls their Delay. The
// gate is a model of the one there, with which a test compares it.
//
// [Lookup] gives a scenario, [Run] plays it once per policy, and [WriteTable],
// [WriteJSON] and [WriteSVG] show what came out. The same scenario, policies
// and seed give the same bytes.
//
// # The model
//
// A request takes no time. The server serves Capacity requests per second; it
// has a queue for what it serves in a tenth of a second, and refuses a request
// that finds the queue full. While it is down it refuses all. A client that was
// refused waits as its policy says and asks again, until it is served; only the
// policy bidmanager gives up, after its five retries. A client that waits at a
// gate does not give up.
//
// Events are processed one by one, in the order of time. Clients that fail
// together and whose policy has no jitter stay together for ever: they are
// interchangeable, and are simulated as one event with a count.
package herd
