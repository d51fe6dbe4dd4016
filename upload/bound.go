package upload

import (
	"time"

	"gcsup/chunk"
)

const (
	firstBound = 1 << 30       // of the first request, when no chunk size is set
	boundTime  = time.Minute   // how long a request should take once the rate is known
	maxBound   = 1 << 40       // keeps the arithmetic in range; nobody sends a TiB in a minute
	minBound   = chunk.Quantum // it does not sink below this
	cutsBefore = 2             // requests in a row that were cut and left nothing, before it sinks
)

// bound says how many bytes one request may carry. A long upload so learns a
// durable offset, and compares the checksum, about once a minute; a network
// that cuts long requests makes it smaller until they pass.
type bound struct {
	limit   int64 // from the options: never more than this
	timed   bool  // the rate sets it
	now     int64
	cuts    int  // in a row, without progress
	lowered bool // by cuts; it grows back step by step
}

func newBound(chunkSize int64) *bound {
	if chunkSize > 0 {
		return &bound{limit: chunkSize, now: chunkSize}
	}
	return &bound{limit: maxBound, now: firstBound, timed: true}
}

// size is the most that the next request should carry: a multiple of the
// quantum, and at least one.
func (b *bound) size() int64 { return b.now }

// passed: a request of n bytes took d and was acknowledged.
func (b *bound) passed(n int64, d time.Duration) {
	b.cuts = 0
	next := b.limit
	if b.timed && d > 0 {
		if perBound := float64(n) / d.Seconds() * boundTime.Seconds(); perBound < float64(next) {
			next = int64(perBound)
		}
	}
	if b.lowered {
		if step := 2 * b.now; step < next {
			next = step
		} else {
			b.lowered = false
		}
	}
	b.now = max(chunk.Floor(next), minBound)
}

// cut: a request broke off after n bytes were handed to the network.
func (b *bound) cut(n int64, progress bool) {
	if progress {
		b.cuts = 0
		return
	}
	if b.cuts++; b.cuts >= cutsBefore {
		b.now = max(chunk.Floor(min(b.now, n)/2), minBound)
		b.lowered = true
	}
}
