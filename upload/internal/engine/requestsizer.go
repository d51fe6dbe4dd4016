package engine

import (
	"time"

	"gcsup/chunk"
)

const (
	firstSize  = 1 << 30           // of the first request, if no chunk size is set
	targetTime = time.Minute       // how long a request should take once the rate is known
	maxSize    = 1 << 40           // keeps the arithmetic in range; no link carries a TiB in a minute
	minSize    = chunk.Granularity // the minimum size of a request
	cutsBefore = 2                 // consecutive requests that were cut without committed bytes, before the size shrinks
)

// requestSizer chooses how many bytes one request may carry. A request takes about a
// minute, so that a long upload gets a committed offset and a checksum every minute. On a network that cuts long requests, the
// size shrinks until the requests succeed.
type requestSizer struct {
	limit  int64         // the maximum size, from the options
	target time.Duration // how long a request should take at the observed rate; 0 means that the rate does not matter
	now    int64
	cuts   int  // in a row, without progress
	shrunk bool // by cuts; the size grows back step by step
}

// newRequestSizer returns a requestSizer for requests of at most chunkSize bytes. 0 means no limit.
func newRequestSizer(chunkSize int64) *requestSizer {
	s := &requestSizer{limit: maxSize, now: firstSize, target: targetTime}
	if chunkSize > 0 {
		s.limit, s.now, s.target = chunkSize, chunkSize, 0
	}
	return s
}

// size returns the maximum size of the next request: a positive multiple of
// chunk.Granularity.
func (s *requestSizer) size() int64 { return s.now }

// passed records that a request of n bytes took d and was acknowledged.
func (s *requestSizer) passed(n int64, d time.Duration) {
	s.cuts = 0
	next := s.limit
	if s.target > 0 && d > 0 {
		if perTarget := float64(n) / d.Seconds() * s.target.Seconds(); perTarget < float64(next) {
			next = int64(perTarget)
		}
	}
	if s.shrunk {
		if step := 2 * s.now; step < next {
			next = step
		} else {
			s.shrunk = false
		}
	}
	s.now = max(chunk.Floor(next), minSize)
}

// cut records that a request was cut after n bytes were handed to the network, and
// whether the server committed any of them.
func (s *requestSizer) cut(n int64, progress bool) {
	if progress {
		s.cuts = 0
		return
	}
	if s.cuts++; s.cuts >= cutsBefore {
		s.now = max(chunk.Floor(min(s.now, n)/2), minSize)
		s.shrunk = true
	}
}
