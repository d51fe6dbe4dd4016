package batch

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gcsup/internal/bucket"
	"gcsup/internal/testsize"
	"gcsup/session"
)

// slicePages is a listing of sorted names, in pages of size names.
type slicePages struct {
	names    []string
	size     int
	at       int
	requests int
	fail     int // the number of the request that fails, from 1; 0 if none does
}

var errPage = errors.New("no page")

func (s *slicePages) fetch(_ context.Context, q bucket.Query) (*bucket.Page, error) {
	if q.PageToken == "" {
		s.at, _ = slices.BinarySearch(s.names, q.StartOffset)
	}
	if s.requests++; s.requests == s.fail {
		return nil, errPage
	}
	page := &bucket.Page{}
	if s.requests%5 == 3 { // as the service does after many deletions
		page.NextPageToken = "x"
		return page, nil
	}
	for len(page.Objects) < s.size && s.at < len(s.names) {
		page.Objects = append(page.Objects, session.Object{Name: s.names[s.at], Generation: int64(s.at) + 1})
		s.at++
	}
	if s.at < len(s.names) {
		page.NextPageToken = "x"
	}
	return page, nil
}

// merge returns a Merge with the listing of a prefix of the bucket bkt.
func merge(prefix string, fetch Fetch) *Merge {
	return NewMerge(context.Background(), bucket.Query{Bucket: "bkt", Prefix: prefix}, fetch)
}

// randomNames returns n random names with the prefix. They have few different letters,
// so that some are equal and some are prefixes of others.
func randomNames(rng *rand.Rand, prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		b := []byte(prefix)
		for range 1 + rng.IntN(8) {
			b = append(b, "ab/-\xc3"[rng.IntN(5)])
		}
		names[i] = string(b)
	}
	return names
}

// TestMergeProperty compares the merge of random names and listings with a map.
func TestMergeProperty(t *testing.T) {
	t.Parallel()
	runs := testsize.Full(20_000, 4000)
	if testing.Short() {
		runs = 500
	}
	listed := 0
	for seed := range runs {
		rng := rand.New(rand.NewPCG(1, uint64(seed)))
		prefix := []string{"", "a", "a/"}[rng.IntN(3)]
		objects := randomNames(rng, prefix, rng.IntN(200))
		slices.Sort(objects)
		objects = slices.Compact(objects)
		wanted := randomNames(rng, prefix, rng.IntN(60))
		if rng.IntN(2) == 0 && len(objects) > 0 {
			for range rng.IntN(200) {
				wanted = append(wanted, objects[rng.IntN(len(objects))])
			}
		}
		slices.Sort(wanted)
		unsorted := len(wanted)
		if rng.IntN(4) == 0 && len(wanted) > 1 {
			i := 1 + rng.IntN(len(wanted)-1)
			wanted[i-1], wanted[i] = wanted[i], wanted[i-1]
			if wanted[i] < wanted[i-1] {
				unsorted = i
			}
		}
		exists := map[string]int64{}
		for i, name := range objects {
			exists[name] = int64(i) + 1
		}
		pages := &slicePages{names: objects, size: 1 + rng.IntN(20)}
		if rng.IntN(4) == 0 {
			pages.fail = 1 + rng.IntN(10)
		}
		m := merge(prefix, pages.fetch)
		failed := false
		for i, name := range wanted {
			object, found, err := m.Lookup(name)
			switch {
			case err != nil && (failed || found || object != nil):
				t.Fatalf("seed %d: name %d %q: found %v, %+v after an earlier failure %v, and %v", seed, i, name, found, object, failed, err)
			case err != nil:
				failed = true
			case found && (failed || i >= unsorted):
				t.Fatalf("seed %d: name %d %q is found after a failure or out of order", seed, i, name)
			case !found && object != nil:
				t.Fatalf("seed %d: name %d %q is not looked up but has an object", seed, i, name)
			case found && object == nil && exists[name] != 0:
				t.Fatalf("seed %d: name %d %q has no object, want generation %d", seed, i, name, exists[name])
			case object != nil && (object.Generation != exists[name] || object.Name != name || object.Bucket != "bkt"):
				t.Fatalf("seed %d: name %d %q has %+v, want generation %d", seed, i, name, object, exists[name])
			case found:
				listed++
			}
		}
		m.Close()
		if m.pages.ahead != nil || !failed && m.Unsorted() != (unsorted < len(wanted)) {
			t.Fatalf("seed %d: unsorted %v, a page is being read %v", seed, m.Unsorted(), m.pages.ahead != nil)
		}
	}
	if listed < 10*runs {
		t.Errorf("only %d names of %d runs were looked up", listed, runs)
	}
}

// TestMergeUnsortedListing checks that a page out of order ends the merge, and
// that no job is answered from it.
func TestMergeUnsortedListing(t *testing.T) {
	for _, test := range []struct {
		name  string
		pages [2][]string
		want  string // L for each job that is listed
	}{
		{"sorted", [2][]string{{"p/a", "p/b", "p/c", "p/d", "p/e", "p/f", "p/g", "p/h"}, {"p/i"}}, "LLLLLLLLLL"},
		{"in a page", [2][]string{{"p/a", "p/b", "p/c", "p/d", "p/e", "p/g", "p/f", "p/h"}, {"p/i"}}, "----------"},
		{"between pages", [2][]string{{"p/a", "p/b", "p/c", "p/d", "p/e", "p/f", "p/g", "p/h"}, {"p/g"}}, "LLLLLLLL--"},
		{"without the prefix", [2][]string{{"p/a", "p/b", "p/c", "p/d", "p/e", "p/f", "p/g", "p/h"}, {"q"}}, "LLLLLLLL--"},
		{"before the start", [2][]string{{"o/a"}, nil}, "----------"},
	} {
		m := merge("p/", fixedPages(test.pages).fetch)
		var got strings.Builder
		for i := range 10 {
			_, listed, err := m.Lookup("p/" + string(rune('a'+i)))
			switch {
			case err != nil:
				t.Errorf("%s: %v", test.name, err)
			case listed:
				got.WriteByte('L')
			default:
				got.WriteByte('-')
			}
		}
		m.Close()
		if got.String() != test.want {
			t.Errorf("%s: %s, want %s", test.name, &got, test.want)
		}
	}
}

type fixedPages [2][]string

func (f fixedPages) fetch(_ context.Context, q bucket.Query) (*bucket.Page, error) {
	page, names := &bucket.Page{NextPageToken: "x"}, f[0]
	if q.PageToken != "" {
		page.NextPageToken, names = "", f[1]
	}
	for _, name := range names {
		page.Objects = append(page.Objects, session.Object{Name: name})
	}
	return page, nil
}

// TestMergeWithoutPrefix checks that a name without the prefix is not looked up, even if it
// is out of order.
func TestMergeWithoutPrefix(t *testing.T) {
	m := merge("p/", (&slicePages{names: []string{"p/a", "p/b", "p/c"}, size: 10}).fetch)
	defer m.Close()
	for _, test := range []struct {
		name           string
		listed, exists bool
	}{{"p/b", true, true}, {"o", false, false}, {"p/bb", true, false}, {"p/c", true, true}} {
		if object, listed, err := m.Lookup(test.name); listed != test.listed || (object != nil) != test.exists || err != nil {
			t.Errorf("%s: listed %v, %+v, %v", test.name, listed, object, err)
		}
	}
}

// TestMergeSkips checks how many names are not looked up if few of the listed names are wanted: after three pages
// that answer one name each, 8 are left out, then 16 after each such page, and so on, up to 1,024. A page that
// answers eight names starts this over. Positive numbers are names that are looked up.
func TestMergeSkips(t *testing.T) {
	pages := &generatedPages{count: 10_000_000}
	m := merge(generatedPrefix, pages.fetch)
	defer m.Close()
	n, want := 0, 0
	for i, run := range []int{3, -8, 1, -16, 1, -32, 1, -64, 1, -128, 1, -256, 1, -512, 1, -1024, 1, -1024, 0, 2, -8, 1, -16, 1} {
		want += max(run, 0)
		if run == 0 { // eight names of one page, after which the next one is read ahead
			want += 2
			for j := range minServed {
				if _, listed, err := m.Lookup(string(generatedName(nil, n*2000+j))); !listed || err != nil {
					t.Fatalf("run %d: %v, %v", i, listed, err)
				}
			}
			n++
			continue
		}
		for range max(run, -run) {
			object, listed, err := m.Lookup(string(generatedName(nil, n*2000)))
			if listed != (run > 0) || (object != nil) != listed || err != nil {
				t.Fatalf("run %d of %d names: name %d is looked up: %v, %v", i, run, n, listed, err)
			}
			n++
		}
	}
	if pages.requests != want {
		t.Errorf("%d requests, want %d", pages.requests, want)
	}
}

// generatedPages is a listing of count names that are made on demand.
type generatedPages struct {
	count    int
	at       int
	requests int
}

const generatedPrefix = "dir/"

func generatedName(b []byte, n int) []byte {
	b = append(b[:0], generatedPrefix+"0000000000"...)
	digits := strconv.AppendInt(nil, int64(n), 10)
	copy(b[len(b)-len(digits):], digits)
	return b
}

func (g *generatedPages) fetch(_ context.Context, q bucket.Query) (*bucket.Page, error) {
	if q.PageToken == "" {
		n, err := strconv.Atoi(q.StartOffset[len(generatedPrefix):])
		if err != nil {
			return nil, err
		}
		g.at = n
	}
	g.requests++
	page := &bucket.Page{Objects: make([]session.Object, 0, bucket.PageMax)}
	var text []byte
	for len(page.Objects) < bucket.PageMax && g.at < g.count {
		text = generatedName(text, g.at)
		page.Objects = append(page.Objects, session.Object{Name: string(text), Generation: int64(g.at) + 1, Size: 16 << 10})
		g.at++
	}
	if g.at < g.count {
		page.NextPageToken = "x"
	}
	return page, nil
}

// TestMergeTenMillion merges a generated listing of ten million names with every third of
// them, in constant memory. Only .ci/run merges as many.
func TestMergeTenMillion(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	count := testsize.Full(10_000_000, 1_000_000)
	var before, m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	pages := &generatedPages{count: count}
	merge := merge(generatedPrefix, pages.fetch)
	peak := uint64(0)
	var text []byte
	for n := 0; n < count; n += 3 {
		text = generatedName(text, n)
		if object, listed, err := merge.Lookup(string(text)); object == nil || !listed {
			t.Fatalf("name %d is looked up: %v, %v", n, listed, err)
		}
		if n%300_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc-min(m.HeapAlloc, before.HeapAlloc))
		}
	}
	merge.Close()
	if pages.requests > count/bucket.PageMax || peak > 2<<20 { // two pages
		t.Errorf("%d requests for %d names, and the heap grew by %d bytes, want less than 2 MiB", pages.requests, count, peak)
	}
}

// BenchmarkMerge looks up each name of a listing.
func BenchmarkMerge(b *testing.B) {
	m := merge(generatedPrefix, (&generatedPages{count: b.N}).fetch)
	defer m.Close()
	b.ReportAllocs()
	var text []byte
	b.ResetTimer()
	for n := range b.N {
		text = generatedName(text, n)
		if object, _, err := m.Lookup(string(text)); object == nil {
			b.Fatal(n, err)
		}
	}
}
