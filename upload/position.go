package upload

import (
	"sync/atomic"

	"gcsup/upload/internal/source"
)

// position is the progress of one range of a source. The goroutines of the upload and
// of net/http write it, and the goroutine of the events reads it.
type position struct {
	size      atomic.Int64 // of the range; -1 while it is not known
	sent      atomic.Int64 // offset up to which the current request handed bytes to the network
	committed atomic.Int64 // offset up to which the server holds them

	source atomic.Pointer[source.Offsets] // of a source that is compressed; nil for any other

	handed int64 // the greatest offset that this call handed to the network; for the upload's goroutine
}

// load returns the three numbers that events carry.
func (p *position) load() (size, sent, committed int64) {
	return p.size.Load(), p.sent.Load(), p.committed.Load()
}
