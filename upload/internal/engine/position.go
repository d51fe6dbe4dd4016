package engine

import "sync/atomic"

// Position is the progress of one range of a source. The goroutines of the upload and
// of net/http write it, and the goroutine of the events reads it.
type Position struct {
	Size      atomic.Int64 // of the range; -1 while it is not known
	Sent      atomic.Int64 // offset up to which the current request handed bytes to the network
	Committed atomic.Int64 // offset up to which the server holds them

	Handed int64 // the greatest offset that this call handed to the network; for the upload's goroutine
}

// NewPosition returns the position at the start of a range of size bytes.
func NewPosition(size int64) *Position {
	p := new(Position)
	p.Size.Store(size)
	return p
}

// Load returns the three numbers that events carry.
func (p *Position) Load() (size, sent, committed int64) {
	return p.Size.Load(), p.Sent.Load(), p.Committed.Load()
}
