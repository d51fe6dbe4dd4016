package chunk

import (
	"fmt"
	"sync"
)

// Running computes the CRC32C of each prefix of a source, and can step back. It
// stores the CRC32C at every [Quantum] boundary after its base. After a step
// back it resumes from a stored position. If the bytes of the second pass
// differ from those of the first, Write returns an error.
//
// Only one goroutine at a time may call Write and Rewind. The other methods may
// be called concurrently.
type Running struct {
	mu sync.Mutex

	// Invariant: base.Offset <= at.Offset, and marks has the CRC32C at each
	// boundary in (base.Offset, max(at.Offset, top.Offset)], in order.
	base  Checkpoint // the earliest stored position
	marks []uint32
	at    Checkpoint // the position of the current pass
	top   Checkpoint // the furthest position of all earlier passes
	err   error      // the first difference found
}

// NewRunning returns a Running that starts at base: the zero Checkpoint for the
// start of a source, or a saved one.
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

// Write hashes p. If the CRC32C at a stored position differs from the stored
// one, Write returns an error that wraps [ErrChanged], and so does every later
// Write.
func (r *Running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for r.err == nil && n < len(p) {
		// Hash up to the next position at which the CRC32C is stored or
		// compared.
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

// remember stores or compares the CRC32C at the current position.
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
		r.err = fmt.Errorf("second pass: bytes before offset %d differ from the first pass: %w", r.at.Offset, ErrChanged)
	}
}

// boundaries returns the number of boundaries in (base.Offset, offset].
func (r *Running) boundaries(offset int64) int {
	return int((Floor(offset) - Floor(r.base.Offset)) / Quantum)
}

// Rewind moves to the greatest stored position at or before offset and returns
// it. Write continues from there. Later positions stay stored for comparison.
// Usually offset is the committed offset, and Rewind steps back. Rewind steps
// forward if an earlier Rewind stepped back too far.
//
// If offset is before all stored positions (see [Running.Forget]), Rewind moves
// to the earliest stored position, which is greater than offset.
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

// Nearest returns the greatest stored position at or before offset, or false if
// there is none. It does not move. Save the position, so that another process
// can resume from it with [NewRunning].
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
	// Below top this is a second pass, in which the bytes since the last
	// boundary are not compared yet.
	if r.at.Offset <= offset && r.at.Offset > best.Offset && r.at.Offset > r.top.Offset {
		best = r.at
	}
	return best, true
}

// Forget drops all stored positions before the greatest one at or before both
// offset and the current position. Call it with each committed offset to bound
// the memory: committed bytes are never sent again.
func (r *Running) Forget(offset int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to, ok := r.nearest(min(offset, r.at.Offset))
	if !ok {
		return
	}
	// The next append that grows marks frees the dropped front of the array.
	r.marks = r.marks[r.boundaries(to.Offset):]
	r.base = to
}
