package engine

import "sync/atomic"

// Tally has the sums over the transfers of one upload.
type Tally struct {
	Requests atomic.Int64
	Sent     atomic.Int64 // bytes handed to the network, also by the current requests
	Resent   atomic.Int64 // those of them that were handed over before
	Reread   atomic.Int64 // bytes read only for a checksum
	Paced    atomic.Int64 // how long requests waited for the rate of their bucket, in nanoseconds
}
