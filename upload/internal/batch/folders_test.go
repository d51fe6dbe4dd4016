package batch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"gcsup/internal/testsize"
)

// TestFolders deletes the folders of random trees with several goroutines. Each must be deleted once, and after
// the folders in it; it is kept if one of them was.
func TestFolders(t *testing.T) {
	seed := testsize.Seed(t)
	for run := range 300 {
		rng := rand.New(rand.NewPCG(seed, uint64(run)))
		names := map[string]bool{} // and whether the service refuses to delete the folder
		for range rng.IntN(30) {
			name := ""
			for range 1 + rng.IntN(4) {
				name += fmt.Sprintf("%d/", rng.IntN(3))
				names[name] = rng.IntN(8) == 0
			}
		}
		var sorted []string
		for name := range names {
			sorted = append(sorted, name)
		}
		slices.Sort(sorted)
		var tree FolderTree
		var mu sync.Mutex
		var deleted []string
		kept := map[string]bool{}
		work := func(n *Folder) {
			for n != nil {
				mu.Lock()
				if n.Kept || names[n.Name] {
					kept[n.Name] = true
				} else {
					deleted = append(deleted, n.Name)
				}
				done := !kept[n.Name]
				mu.Unlock()
				n = tree.Finish(n, done)
			}
		}
		innermost := make(chan *Folder)
		var workers sync.WaitGroup
		for range 1 + run%4 {
			workers.Go(func() {
				for n := range innermost {
					work(n)
				}
			})
		}
		for n := range tree.Innermost(slices.Values(sorted)) {
			innermost <- n
		}
		close(innermost)
		workers.Wait()
		if len(deleted)+len(kept) != len(names) {
			t.Fatalf("run %d: %v deleted and %v kept of %v", run, deleted, kept, sorted)
		}
		for _, name := range sorted {
			wantKept := false
			for inner, refused := range names {
				wantKept = wantKept || refused && strings.HasPrefix(inner, name)
				if i, j := slices.Index(deleted, name), slices.Index(deleted, inner); i >= 0 && j > i && inner != name && strings.HasPrefix(inner, name) {
					t.Errorf("run %d: %s was deleted before %s", run, name, inner)
				}
			}
			if kept[name] != wantKept {
				t.Errorf("run %d: %s is kept: %v, want %v", run, name, kept[name], wantKept)
			}
		}
	}
	var tree FolderTree
	yielded := 0
	for range tree.Innermost(slices.Values([]string{"a/", "b/", "c/"})) {
		yielded++
		break
	}
	if yielded != 1 {
		t.Errorf("%d folders after the loop ended", yielded)
	}
}
