package chunk

import (
	"fmt"
	"sync"

	"gcsup/internal/checksum"
)

// Checkpoint is an offset in a source and the CRC32C of all bytes before it.
// The zero Checkpoint is the start of any source.
type Checkpoint struct {
	Offset int64  `json:"offset"` // in bytes
	CRC32C uint32 `json:"crc32c"` // of the bytes [0, Offset)
}

// PrefixCRC computes the CRC32C of each prefix of a source, and can step back. It
// stores the CRC32C at every [Granularity] boundary after its base. After a step
// back it resumes from a stored position. If the bytes of the second pass
// differ from those of the first, Write returns an error.
//
// The zero value starts at the start of a source. Only one goroutine at a time may
// call Write and Rewind. The other methods may be called concurrently.
type PrefixCRC struct {
	mu sync.Mutex

	// Invariant: base.Offset <= at.Offset, and marks has the CRC32C at each
	// boundary in (base.Offset, max(at.Offset, top.Offset)], in order.
	base  Checkpoint // the earliest stored position
	marks []uint32
	at    Checkpoint // the position of the current pass
	top   Checkpoint // the furthest position of all earlier passes
	err   error      // the first difference found
}

// NewPrefixCRC returns a PrefixCRC that starts at base: the zero Checkpoint for
// the start of a source, or a saved one.
func NewPrefixCRC(base Checkpoint) *PrefixCRC {
	return &PrefixCRC{base: base, at: base, top: base}
}

// Offset returns the position of the next byte to be written.
func (r *PrefixCRC) Offset() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at.Offset
}

// Sum returns the CRC32C of the bytes before [PrefixCRC.Offset].
func (r *PrefixCRC) Sum() uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at.CRC32C
}

// Write hashes p. If the CRC32C at a stored position differs from the stored
// one, Write returns an error that wraps [ErrChanged], and so does every later
// Write.
func (r *PrefixCRC) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for r.err == nil && n < len(p) {
		// Hash up to the next position at which the CRC32C is stored or
		// compared.
		stop := Floor(r.at.Offset) + Granularity
		if r.at.Offset < r.top.Offset {
			stop = min(stop, r.top.Offset)
		}
		part := p[n:]
		if left := stop - r.at.Offset; int64(len(part)) > left {
			part = part[:left]
		}
		r.at.CRC32C = checksum.Update(r.at.CRC32C, part)
		r.at.Offset += int64(len(part))
		n += len(part)
		r.remember()
	}
	return n, r.err
}

// remember stores or compares the CRC32C at the current position.
func (r *PrefixCRC) remember() {
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
func (r *PrefixCRC) boundaries(offset int64) int {
	return int((Floor(offset) - Floor(r.base.Offset)) / Granularity)
}

// Rewind moves to the greatest stored position at or before offset and returns
// it. Write continues from there. Later positions stay stored for comparison.
// Usually offset is the committed offset, and Rewind steps back. Rewind steps
// forward if an earlier Rewind stepped back too far.
//
// If offset is before all stored positions (see [PrefixCRC.Forget]), Rewind moves
// to the earliest stored position, which is greater than offset.
func (r *PrefixCRC) Rewind(offset int64) Checkpoint {
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
// can resume from it with [NewPrefixCRC].
func (r *PrefixCRC) Nearest(offset int64) (Checkpoint, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nearest(offset)
}

func (r *PrefixCRC) nearest(offset int64) (Checkpoint, bool) {
	if offset < r.base.Offset {
		return Checkpoint{}, false
	}
	best := r.base
	if n := min(r.boundaries(offset), len(r.marks)); n > 0 {
		best = Checkpoint{Floor(r.base.Offset) + int64(n)*Granularity, r.marks[n-1]}
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

// Forget drops stored positions that are no longer needed: all before the greatest one
// that is neither after offset nor after the current position. Call it with each committed offset to
// bound the memory: committed bytes are never sent again.
func (r *PrefixCRC) Forget(offset int64) {
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
