package tree

import (
	"math/rand/v2"
	"runtime"
	"testing"
)

// A hashset agrees with a map, for values that differ in a few bits as well as for
// random ones.
func TestHashset(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, mask := range []uint64{1<<64 - 1, 0xff, 0xff << 56, 0xff << 46, 0xfff << 20, 1<<63 | 0xf} {
		set, want := &hashset{}, map[uint64]bool{0: false}
		for range 5000 {
			h := rnd.Uint64() & mask
			if h == 1 {
				continue // equal to 0
			}
			if got := set.has(h); got != want[h] {
				t.Fatalf("mask %x: has(%x) is %v", mask, h, got)
			}
			if rnd.IntN(2) == 0 {
				set.add(h)
				want[h] = true
			}
		}
		for h, has := range want {
			if set.has(h) != has {
				t.Fatalf("mask %x: has(%x) is %v at the end", mask, h, !has)
			}
		}
	}
}

// A list keeps about 12 bytes for each name.
func TestSeenMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("makes many files")
	}
	const names = 1_000_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	set := &hashset{}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range names {
		set.add(rnd.Uint64())
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if perName := float64(after.HeapAlloc-before.HeapAlloc) / names; perName > 14 {
		t.Errorf("%.1f bytes for each name", perName)
	}
	runtime.KeepAlive(set)
}
