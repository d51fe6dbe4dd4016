package fakegcs

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

// A bucket has the names of its objects in their order after any changes.
func TestSortedNames(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	b := &bucket{objects: map[string]*generations{}}
	for step := range 20000 {
		name := strconv.Itoa(random.IntN(300))
		if random.IntN(2) == 0 {
			b.at(name).live = &version{}
		} else if g := b.objects[name]; g != nil {
			g.live = nil
			b.tidy(name)
		}
		if random.IntN(40) == 0 {
			if got, want := b.sortedNames(), slices.Sorted(maps.Keys(b.objects)); !slices.Equal(got, want) {
				t.Fatalf("step %d: %q, want %q", step, got, want)
			}
		}
	}
	for i := range 100_000 { // names that no listing asks for need no memory after their objects
		name := "x" + strconv.Itoa(i)
		b.at(name).live = &version{}
		b.objects[name].live = nil
		b.tidy(name)
	}
	if n := len(b.names.sorted) + len(b.names.added); n > 3000 {
		t.Errorf("%d names of %d objects", n, len(b.objects))
	}
}
