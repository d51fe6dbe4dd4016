package outbox

import (
	"hash/maphash"
	"iter"
)

// index finds files by their names. A map would keep the name a second time, and need four times the memory.
// It is a hash table with linear probing, whose length is a power of 2.
type index struct {
	seed  maphash.Seed
	slots []*entry
	n     int
}

func newIndex() *index { return &index{seed: maphash.MakeSeed()} }

// home returns the slot at which the search for a name begins.
func (x *index) home(name string) int {
	return int(maphash.String(x.seed, name) & uint64(len(x.slots)-1))
}

// next returns the slot after slot i.
func (x *index) next(i int) int { return (i + 1) & (len(x.slots) - 1) }

// find returns the slot of a name, or the empty slot that it would have. There must be slots.
func (x *index) find(name string) int {
	i := x.home(name)
	for x.slots[i] != nil && x.slots[i].name != name {
		i = x.next(i)
	}
	return i
}

// get returns the file with a name, or nil.
func (x *index) get(name string) *entry {
	if x.n == 0 {
		return nil
	}
	return x.slots[x.find(name)]
}

// add adds a file whose name is not in the index.
func (x *index) add(f *entry) {
	if 5*x.n >= 4*len(x.slots) {
		old := x.slots
		x.slots = make([]*entry, max(2*len(old), 16))
		for _, f := range old {
			if f != nil {
				x.slots[x.find(f.name)] = f
			}
		}
	}
	x.slots[x.find(f.name)] = f
	x.n++
}

// remove removes the file with a name, which is in the index.
func (x *index) remove(name string) {
	hole := x.find(name)
	for i := x.next(hole); x.slots[i] != nil; i = x.next(i) {
		// A file fills the hole if the search for it passes the hole.
		mask := len(x.slots) - 1
		if (i-x.home(x.slots[i].name))&mask >= (i-hole)&mask {
			x.slots[hole] = x.slots[i]
			hole = i
		}
	}
	x.slots[hole] = nil
	if x.n--; x.n == 0 {
		x.slots = nil
	}
}

// all yields the files. The index must not be changed meanwhile.
func (x *index) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, f := range x.slots {
			if f != nil && !yield(f) {
				return
			}
		}
	}
}
