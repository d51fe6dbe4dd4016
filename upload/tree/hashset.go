package tree

import "math/bits"

// A hashset is a set of hashes. It uses about 12 bytes for each. A map uses 37,
// and more while it grows.
type hashset struct {
	tables [1024]hashtable // by the first 10 bits, so that each grows alone
}

// A hashtable uses linear probing. An empty slot is 0.
type hashtable struct {
	slots []uint64
	used  int
}

// has reports whether h is in the set.
func (s *hashset) has(h uint64) bool {
	t, h := s.table(h)
	return len(t.slots) > 0 && t.slots[t.find(h)] == h
}

// add adds h.
func (s *hashset) add(h uint64) {
	t, h := s.table(h)
	if t.used >= len(t.slots)*4/5 {
		t.grow()
	}
	at := t.find(h)
	if t.slots[at] == 0 {
		t.slots[at] = h
		t.used++
	}
}

// table returns the table of h, and the value in the table.
func (s *hashset) table(h uint64) (*hashtable, uint64) {
	return &s.tables[h>>(64-10)], max(h, 1)
}

// find returns the slot of h, or the empty slot in which it belongs.
func (t *hashtable) find(h uint64) int {
	at, _ := bits.Mul64(h<<10, uint64(len(t.slots))) // in proportion to the bits after the first 10
	for i := int(at); ; {
		if t.slots[i] == h || t.slots[i] == 0 {
			return i
		}
		if i++; i == len(t.slots) {
			i = 0
		}
	}
}

func (t *hashtable) grow() {
	old := t.slots
	t.slots = make([]uint64, len(old)+len(old)/4+8)
	for _, h := range old {
		if h != 0 {
			t.slots[t.find(h)] = h
		}
	}
}
