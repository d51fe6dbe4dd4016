package blob

import (
	"math/rand/v2"
	"testing"
)

// A block set is the set that a map is, after any changes.
func TestBlockSet(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var s blockSet
	want := map[int64]bool{}
	for step := range 20000 {
		off := random.Int64N(200)
		switch random.IntN(3) {
		case 0:
			if !want[off] {
				s.add(off)
				want[off] = true
			}
		case 1:
			if got := s.remove(off); got != want[off] {
				t.Fatalf("step %d: remove(%d) = %v, want %v", step, off, got, want[off])
			}
			delete(want, off)
		default:
			got, ok := s.take()
			if ok != (len(want) > 0) || ok && !want[got] {
				t.Fatalf("step %d: take = %d, %v, want one of %d blocks", step, got, ok, len(want))
			}
			delete(want, got)
		}
		if len(s.offsets) != len(want) || len(s.index) != len(want) {
			t.Fatalf("step %d: %d offsets and %d indexes of %d blocks", step, len(s.offsets), len(s.index), len(want))
		}
	}
}

// BenchmarkFewFreeBlocks takes and releases the only free block, after there were many.
func BenchmarkFewFreeBlocks(b *testing.B) {
	s := newSpill(nil)
	var taken []block
	for range 1 << 17 {
		taken = append(taken, s.takeLocked(0))
	}
	for i := 0; i < len(taken); i += 2 { // their neighbors stay in use, so that they are not joined
		s.release(taken[i : i+1])
	}
	for len(s.free[0].offsets) > 1 {
		s.takeLocked(0)
	}
	for b.Loop() {
		s.release([]block{s.takeLocked(0)})
	}
}
