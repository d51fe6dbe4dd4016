package upload

import "sync/atomic"

// tally has the sums over the transfers of one upload.
type tally struct {
	requests atomic.Int64
	sent     atomic.Int64 // bytes handed to the network, also by the current requests
	resent   atomic.Int64 // those of them that were handed over before
	reread   atomic.Int64 // bytes read only for a checksum
}
