package upload

import "sync/atomic"

// position is how far one range of a source has come on its way. The upload and
// net/http's goroutine write it, the goroutine of the events reads it.
type position struct {
	size      atomic.Int64 // of the range; -1 while it is not known
	sent      atomic.Int64 // offset up to which the request under way handed bytes to the network
	committed atomic.Int64 // offset up to which the server holds them

	source sourceOffsets // of a source that is compressed

	handed int64 // the greatest offset that this call handed to the network; for the upload's goroutine
}

// load returns the three numbers that events carry.
func (p *position) load() (size, sent, committed int64) {
	return p.size.Load(), p.sent.Load(), p.committed.Load()
}

// tally adds up what the transfers of one upload did, for its [Result].
type tally struct {
	requests atomic.Int64
	sent     atomic.Int64 // bytes handed to the network
	resent   atomic.Int64 // those of them that were handed over before
	reread   atomic.Int64 // bytes read only for a checksum
}

// count adds up one request, which handed over the bytes from one offset to
// another.
func (t *tally) count(p *position, from, to int64) {
	t.sent.Add(to - from)
	t.resent.Add(max(0, min(to, p.handed)-from))
	p.handed = max(p.handed, to)
	p.sent.Store(to)
}
