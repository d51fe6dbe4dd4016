package chunk

import (
	"fmt"
	"sync"
)

// Running is the running CRC32C of a source that is read from front to back,
// and which can step back. It remembers the CRC32C at every [Quantum] boundary
// since its base, so after a step back it goes on from an exact position, and
// it notices when the source then gives other bytes than the first time.
//
// One goroutine at a time may write to it; the other methods may be called at
// the same time, except Rewind, which moves the writer.
type Running struct {
	mu sync.Mutex

	// Invariant: base.Offset <= at.Offset, and marks has the CRC32C at every
	// boundary in (base.Offset, max(at.Offset, top.Offset)], in order.
	base  Checkpoint // the earliest remembered position
	marks []uint32
	at    Checkpoint // how far it has hashed in this pass
	top   Checkpoint // how far it had come, at most, when it was last moved
	err   error      // the first difference found
}

// NewRunning returns a Running that begins at base: the zero Checkpoint for the
// beginning of a source, or a saved one.
func NewRunning(base Checkpoint) *Running {
	return &Running{base: base, at: base, top: base}
}

// Offset returns the position of the next byte to be written.
func (r *Running) Offset() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at.Offset
}

// Sum returns the CRC32C of the bytes before [Running.Offset].
func (r *Running) Sum() uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at.CRC32C
}

// Write hashes p. If it comes again to a position that it remembers and the
// CRC32C is not what it was, it returns an error that wraps [ErrChanged], and
// so does every later Write.
func (r *Running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for r.err == nil && n < len(p) {
		// Up to the next position at which there is something to remember or
		// to compare.
		stop := Floor(r.at.Offset) + Quantum
		if r.at.Offset < r.top.Offset {
			stop = min(stop, r.top.Offset)
		}
		part := p[n:]
		if left := stop - r.at.Offset; int64(len(part)) > left {
			part = part[:left]
		}
		r.at.CRC32C = Update(r.at.CRC32C, part)
		r.at.Offset += int64(len(part))
		n += len(part)
		r.remember()
	}
	return n, r.err
}

// remember notes or compares the CRC32C at the current position.
func (r *Running) remember() {
	changed := r.at.Offset == r.top.Offset && r.at != r.top
	if r.at.Offset == Floor(r.at.Offset) {
		switch i := r.boundaries(r.at.Offset) - 1; {
		case i == len(r.marks):
			r.marks = append(r.marks, r.at.CRC32C)
		case r.marks[i] != r.at.CRC32C:
			changed = true
		}
	}
	if changed {
		r.err = fmt.Errorf("second reading: bytes before offset %d are not what they were: %w", r.at.Offset, ErrChanged)
	}
}

// boundaries returns how many boundaries lie in (base.Offset, offset].
func (r *Running) boundaries(offset int64) int {
	return int((Floor(offset) - Floor(r.base.Offset)) / Quantum)
}

// Rewind moves to the greatest remembered position at or before offset and
// returns it. Write goes on from there; what was remembered of later positions
// stays, for comparison. Usually this is a step back, to what the server has
// committed. It is a step forward when an earlier Rewind went back further than
// was needed.
//
// If offset lies before all that is remembered (see [Running.Forget]), Rewind
// moves to the earliest remembered position, which is then greater than offset.
func (r *Running) Rewind(offset int64) Checkpoint {
	r.mu.Lock()
	defer r.mu.Unlock()
	to, ok := r.nearest(offset)
	if !ok {
		to = r.base
	}
	if r.at.Offset > r.top.Offset {
		r.top = r.at
	}
	r.at = to
	return to
}

// Nearest returns the greatest remembered position at or before offset, and
// whether there is one. It moves nothing. Such a position is what to save, for
// another process to go on from with [NewRunning].
func (r *Running) Nearest(offset int64) (Checkpoint, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nearest(offset)
}

func (r *Running) nearest(offset int64) (Checkpoint, bool) {
	if offset < r.base.Offset {
		return Checkpoint{}, false
	}
	best := r.base
	if n := min(r.boundaries(offset), len(r.marks)); n > 0 {
		best = Checkpoint{Floor(r.base.Offset) + int64(n)*Quantum, r.marks[n-1]}
	}
	if r.top.Offset <= offset && r.top.Offset > best.Offset {
		best = r.top
	}
	// Below top this is a second pass, and what it has read since the last
	// boundary is not compared yet.
	if r.at.Offset <= offset && r.at.Offset > best.Offset && r.at.Offset > r.top.Offset {
		best = r.at
	}
	return best, true
}

// Forget drops what is remembered of positions before the greatest one at or
// before offset, never past the current position. Committed bytes never need
// to be sent again, so calling it with each committed offset bounds the memory.
func (r *Running) Forget(offset int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to, ok := r.nearest(min(offset, r.at.Offset))
	if !ok {
		return
	}
	// The front of the array goes when append next grows it.
	r.marks = r.marks[r.boundaries(to.Offset):]
	r.base = to
}
