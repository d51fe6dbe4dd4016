package source

import (
	"cmp"
	"slices"
	"sync"
)

// Offsets maps offsets in compressed bytes to offsets in the file. It is safe for
// concurrent use.
type Offsets struct {
	size  int64 // of the file
	mu    sync.Mutex
	marks []offsetMark // ascending

	// earlier is what an earlier process had reached. Estimates use it until these bytes are compressed again.
	earlier offsetMark
}

// offsetMark is a pair of offsets: when made bytes had been compressed, read bytes of
// the file had been read.
type offsetMark struct{ made, read int64 }

// reset replaces all marks by m, and forgets what an earlier process had reached.
func (o *Offsets) reset(m offsetMark) {
	o.Resume(0, 0)
	o.restart(m)
}

// restart replaces all marks by m, because the file is compressed again.
func (o *Offsets) restart(m offsetMark) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.marks = append(o.marks[:0], m)
}

// Resume notes that an earlier process had made some compressed bytes of the first bytes of the file.
func (o *Offsets) Resume(made, read int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.earlier = offsetMark{made, read}
}

// Size returns the size of the file.
func (o *Offsets) Size() int64 { return o.size }

func (o *Offsets) add(m offsetMark) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.marks = append(o.marks, m)
}

// Forget removes the marks before a compressed offset. The bytes before it will not
// be sent again.
func (o *Offsets) Forget(offset int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := o.after(offset)
	o.marks = o.marks[max(i-1, 0):]
}

// read returns how many bytes of the file had been read when the compressed bytes
// before an offset were made.
func (o *Offsets) read(offset int64) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := o.after(offset); i < len(o.marks) {
		return o.marks[i].read
	}
	return o.size
}

// after returns the index of the first mark at or after a compressed offset. The
// caller holds o.mu.
func (o *Offsets) after(offset int64) int {
	i, _ := slices.BinarySearchFunc(o.marks, offset, func(m offsetMark, offset int64) int { return cmp.Compare(m.made, offset) })
	return i
}

// Estimate returns about how much of the file is in the compressed bytes before two
// offsets.
func (o *Offsets) Estimate(sent, committed int64) (fileSent, fileCommitted int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.estimate(sent), o.estimate(committed)
}

// estimate interpolates between two marks. The caller holds o.mu.
func (o *Offsets) estimate(offset int64) int64 {
	var before offsetMark
	i := o.after(offset)
	if i > 0 {
		before = o.marks[i-1]
	}
	after := before
	switch {
	case i < len(o.marks):
		after = o.marks[i]
	case o.earlier.made > before.made:
		after, offset = o.earlier, min(offset, o.earlier.made)
	}
	if after.made == before.made {
		return after.read
	}
	share := float64(offset-before.made) / float64(after.made-before.made)
	return before.read + int64(share*float64(after.read-before.read))
}
