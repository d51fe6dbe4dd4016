package mirror

import (
	"fmt"
	"iter"
	"runtime"
	"testing"

	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload"
)

// generated yields count jobs, and objects of which every third has no file.
func generated(count int) (iter.Seq[upload.Job], iter.Seq2[*session.Object, error]) {
	jobs := func(yield func(upload.Job) bool) {
		for i := range count {
			if i%3 != 0 && !yield(upload.Job{Spec: upload.Spec{Bucket: "bkt", Object: fmt.Sprintf("p/dir/%09d", i)}, Size: 5}) {
				return
			}
		}
	}
	objects := func(yield func(*session.Object, error) bool) {
		for i := range count {
			if !yield(&session.Object{Bucket: "bkt", Name: fmt.Sprintf("p/dir/%09d", i), Size: 5, Generation: 1}, nil) {
				return
			}
		}
	}
	return jobs, objects
}

// TestConstantMemory checks that a plan, and the objects that it keeps for later, need the same memory
// for any number of files.
func TestConstantMemory(t *testing.T) {
	count := testsize.Full(1_500_000, 300_000)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most := heap(), uint64(0)
	jobs, objects := generated(count)
	deletes := newSpool("bkt", t.TempDir())
	defer deletes.close()
	n := 0
	for a, err := range merge(jobs, objects, rules{skip: upload.SkipIdentical, protect: func(*session.Object) Reason { return NoReason }}) {
		require.NoError(t, err)
		if a.Kind == Delete {
			require.NoError(t, deletes.add(a.Object, NoReason))
		}
		if n++; n%(count/10) == 0 {
			most = max(most, heap()-before)
		}
	}
	for _, err := range deletes.entries() {
		require.NoError(t, err)
		if n++; n%(count/10) == 0 {
			most = max(most, heap()-before)
		}
	}
	t.Logf("%d files and objects: %d KiB", count, most>>10)
	if n != count+count/3 || most > 20<<20 {
		t.Errorf("%d actions and deletions, %d KiB", n, most>>10)
	}
}

// BenchmarkMerge is the cost of one object of a plan.
func BenchmarkMerge(b *testing.B) {
	jobs, objects := generated(b.N)
	b.ReportAllocs()
	for _, err := range merge(jobs, objects, rules{skip: upload.SkipIdentical, protect: func(*session.Object) Reason { return NoReason }}) {
		require.NoError(b, err)
	}
}
