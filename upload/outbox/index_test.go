package outbox

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// TestIndex compares an index with a map, after random changes.
func TestIndex(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	x, want := newIndex(), map[string]*entry{}
	most := 0
	for round := range 200_000 {
		name := fmt.Sprint("f", random.IntN(1+round%3000))
		grows := round/20_000%2 == 0
		switch f := want[name]; {
		case x.get(name) != f:
			t.Fatalf("round %d: get(%q) = %v, want %v", round, name, x.get(name), f)
		case f == nil && (grows || random.IntN(4) == 0):
			f = &entry{name: name}
			x.add(f)
			want[name] = f
		case f != nil && (!grows || random.IntN(4) == 0):
			x.remove(name)
			delete(want, name)
		}
		most = max(most, len(want))
		if round%1000 == 0 || len(want) < 3 {
			got := map[string]*entry{}
			for f := range x.all() {
				got[f.name] = f
			}
			if !maps.Equal(got, want) {
				t.Fatalf("round %d: %d files, want %d", round, len(got), len(want))
			}
		}
	}
	for name := range want {
		x.remove(name)
	}
	if x.n != 0 || x.slots != nil || x.get("f1") != nil || most < 1000 {
		t.Errorf("%d files and %d slots are left of %d", x.n, len(x.slots), most)
	}
}
