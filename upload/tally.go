package upload

import "sync/atomic"

// tally has the sums over the transfers of one upload, for its [Result].
type tally struct {
	requests atomic.Int64
	sent     atomic.Int64 // bytes handed to the network, also by the current requests; see meter
	resent   atomic.Int64 // those of them that were handed over before
	reread   atomic.Int64 // bytes read only for a checksum
}

// count notes the end of one request, which handed the bytes between two offsets to the
// network.
func (t *tally) count(p *position, from, to int64) {
	t.resent.Add(max(0, min(to, p.handed)-from))
	p.handed = max(p.handed, to)
	p.sent.Store(to)
}
