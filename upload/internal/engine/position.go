package engine

import "sync/atomic"

// Position is the progress of one range of a source. The goroutines of the upload and
// of net/http write it, and the goroutine of the events reads it.
type Position struct {
	Size      atomic.Int64 // of the range; -1 while it is not known
	Sent      atomic.Int64 // offset up to which the current request handed bytes to the network
	Arrived   atomic.Int64 // offset up to which bytes of the current request arrived that the server keeps; see Load
	Committed atomic.Int64 // offset up to which the server holds them

	Handed int64 // the greatest offset that this call handed to the network; for the upload's goroutine
}

// NewPosition returns the position at the start of a range of size bytes.
func NewPosition(size int64) *Position {
	p := new(Position)
	p.Size.Store(size)
	return p
}

// Load returns the numbers that events carry. arrived is at least committed. The socket may have the bytes
// between arrived and sent.
func (p *Position) Load() (size, sent, arrived, committed int64) {
	sent, committed = p.Sent.Load(), p.Committed.Load()
	return p.Size.Load(), sent, max(min(p.Arrived.Load(), sent), committed), committed
}
