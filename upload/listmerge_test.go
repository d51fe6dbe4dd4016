package upload

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

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
	closed   bool
}

var errPage = errors.New("no page")

func (s *slicePages) seek(name string) (*session.ObjectPage, error) {
	s.at, _ = slices.BinarySearch(s.names, name)
	return s.next()
}

func (s *slicePages) next() (*session.ObjectPage, error) {
	if s.requests++; s.requests == s.fail {
		return nil, errPage
	}
	page := &session.ObjectPage{}
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

func (s *slicePages) prefetch() {}
func (s *slicePages) close()    { s.closed = true }

func jobsOf(names ...string) iter.Seq[Job] {
	return func(yield func(Job) bool) {
		for _, name := range names {
			if !yield(Job{Spec: Spec{Bucket: "bkt", Object: name}}) {
				return
			}
		}
	}
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

// TestMergeProperty compares the merge of random jobs and listings with a map.
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
		m := &listMerge{prefix: prefix}
		i, failed := 0, false
		for job, err := range m.mergeJobs("bkt", jobsOf(wanted...), pages) {
			if err != nil {
				failed = true
				continue
			}
			switch name := wanted[i]; {
			case job.Spec.Object != name:
				t.Fatalf("seed %d: job %d is %q, want %q", seed, i, job.Spec.Object, name)
			case job.Listed && (failed || i >= unsorted):
				t.Fatalf("seed %d: job %d %q is listed after a failure or out of order", seed, i, name)
			case !job.Listed && job.Object != nil:
				t.Fatalf("seed %d: job %d %q is not listed but has an object", seed, i, name)
			case job.Listed && job.Object == nil && exists[name] != 0:
				t.Fatalf("seed %d: job %d %q has no object, want generation %d", seed, i, name, exists[name])
			case job.Object != nil && (job.Object.Generation != exists[name] || job.Object.Name != name || job.Object.Bucket != "bkt"):
				t.Fatalf("seed %d: job %d %q has %+v, want generation %d", seed, i, name, job.Object, exists[name])
			case job.Listed:
				listed++
			}
			i++
		}
		if i != len(wanted) || !pages.closed || !failed && m.unsorted != (unsorted < len(wanted)) {
			t.Fatalf("seed %d: %d jobs of %d, closed %v, unsorted %v", seed, i, len(wanted), pages.closed, m.unsorted)
		}
	}
	if listed < 10*runs {
		t.Errorf("only %d jobs of %d runs were listed", listed, runs)
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
		pages := &fixedPages{test.pages}
		m := &listMerge{prefix: "p/"}
		var got strings.Builder
		for job, err := range m.mergeJobs("bkt", jobsOf("p/a", "p/b", "p/c", "p/d", "p/e", "p/f", "p/g", "p/h", "p/i", "p/j"), pages) {
			switch {
			case err != nil:
				t.Errorf("%s: %v", test.name, err)
			case job.Listed:
				got.WriteByte('L')
			default:
				got.WriteByte('-')
			}
		}
		if got.String() != test.want {
			t.Errorf("%s: %s, want %s", test.name, &got, test.want)
		}
	}
}

type fixedPages struct{ pages [2][]string }

func (f *fixedPages) page(i int) *session.ObjectPage {
	p := &session.ObjectPage{}
	for _, name := range f.pages[i] {
		p.Objects = append(p.Objects, session.Object{Name: name})
	}
	if i == 0 {
		p.NextPageToken = "x"
	}
	return p
}

func (f *fixedPages) seek(string) (*session.ObjectPage, error) { return f.page(0), nil }
func (f *fixedPages) next() (*session.ObjectPage, error)       { return f.page(1), nil }
func (f *fixedPages) prefetch()                                {}
func (f *fixedPages) close()                                   {}

func TestMergePassesJobs(t *testing.T) {
	unreadable := errors.New("unreadable")
	other := Job{Spec: Spec{Bucket: "bkt", Object: "p/a"}, Listed: true, Object: &session.Object{Generation: 7}}
	jobs := []Job{
		{Spec: Spec{Bucket: "bkt", Object: "p/b"}},
		{Spec: Spec{Bucket: "bkt", Object: "p/a"}, Err: unreadable},
		{Spec: Spec{Bucket: "abc", Object: "p/a"}},
		{Spec: Spec{Bucket: "bkt", Object: "o"}},
		other,
		{Spec: Spec{Bucket: "bkt", Object: "p/c"}},
	}
	m := &listMerge{prefix: "p/"}
	var got []Job
	for job, err := range m.mergeJobs("bkt", slices.Values(jobs), &slicePages{names: []string{"p/a", "p/b", "p/c"}, size: 10}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, job)
	}
	if len(got) != len(jobs) || !got[0].Listed || got[1].Err != unreadable || got[1].Listed || got[2].Listed || got[3].Listed || got[4].Object.Generation != 7 || got[5].Object == nil {
		t.Errorf("jobs %+v", got)
	}
}

// generatedPages is a listing of count names that are made on demand. It reuses
// its page.
type generatedPages struct {
	count, step int // the names are multiples of step
	at          int
	requests    int
	page        session.ObjectPage
	text        []byte
}

const generatedPrefix = "dir/"

func generatedName(b []byte, n int) []byte {
	b = append(b[:0], generatedPrefix+"0000000000"...)
	digits := strconv.AppendInt(nil, int64(n), 10)
	copy(b[len(b)-len(digits):], digits)
	return b
}

func (g *generatedPages) seek(name string) (*session.ObjectPage, error) {
	n, err := strconv.Atoi(name[len(generatedPrefix):])
	if err != nil {
		return nil, err
	}
	g.at = (n + g.step - 1) / g.step
	return g.next()
}

func (g *generatedPages) next() (*session.ObjectPage, error) {
	g.requests++
	objects := g.page.Objects[:0]
	for len(objects) < session.ListMax && g.at < g.count {
		g.text = generatedName(g.text, g.at*g.step)
		objects = append(objects, session.Object{Name: string(g.text), Generation: int64(g.at) + 1, Size: 16 << 10})
		g.at++
	}
	g.page.Objects, g.page.NextPageToken = objects, ""
	if g.at < g.count {
		g.page.NextPageToken = "x"
	}
	return &g.page, nil
}

func (g *generatedPages) prefetch() {}
func (g *generatedPages) close()    {}

// generatedJobs yields the multiples of step below limit.
func generatedJobs(limit, step int) iter.Seq[Job] {
	return func(yield func(Job) bool) {
		var text []byte
		for n := 0; n < limit; n += step {
			text = generatedName(text, n)
			if !yield(Job{Spec: Spec{Bucket: "bkt", Object: string(text)}}) {
				return
			}
		}
	}
}

// TestMergeTenMillion merges a generated listing of ten million names with jobs
// of several densities, in constant memory. Only .ci/run merges as many.
func TestMergeTenMillion(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	count := testsize.Full(10_000_000, 1_000_000)
	for _, test := range []struct {
		name                 string
		listStep, jobStep    int
		jobs, listed, exists int
		leastListed, most    int // requests
	}{
		{name: "a job for every third name", listStep: 1, jobStep: 3, jobs: count/3 + 1, leastListed: count/3 + 1, exists: count/3 + 1, most: count / 1000},
		{name: "ten jobs", listStep: 1, jobStep: count / 10, jobs: 10, leastListed: 2, exists: 2, most: 3},
		{name: "ten thousand jobs", listStep: 1, jobStep: 1000, jobs: count / 1000, leastListed: 2, exists: 2, most: 25},
	} {
		t.Run(test.name, func(t *testing.T) {
			var before, m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			pages := &generatedPages{count: count, step: test.listStep}
			jobs, listed, exist, peak := 0, 0, 0, uint64(0)
			for job, err := range (&listMerge{prefix: generatedPrefix}).mergeJobs("bkt", generatedJobs(count*test.listStep, test.jobStep), pages) {
				if err != nil {
					t.Fatal(err)
				}
				if job.Listed {
					listed++
				}
				if job.Object != nil {
					exist++
				}
				if jobs++; jobs%1_000_000 == 0 {
					runtime.GC()
					runtime.ReadMemStats(&m)
					peak = max(peak, m.HeapAlloc-min(m.HeapAlloc, before.HeapAlloc))
				}
			}
			if jobs != test.jobs || listed < test.leastListed || exist < test.exists || pages.requests > test.most {
				t.Errorf("%d jobs, %d listed, %d with an object, %d requests, want %d, at least %d, at least %d, at most %d",
					jobs, listed, exist, pages.requests, test.jobs, test.leastListed, test.exists, test.most)
			}
			if peak > 1<<20 {
				t.Errorf("the heap grew by %d bytes, want less than 1 MiB", peak)
			}
			t.Logf("%d requests, %d of %d jobs listed, heap %d KiB", pages.requests, listed, jobs, peak>>10)
		})
	}
}

// BenchmarkMerge merges one job with each name of a listing.
func BenchmarkMerge(b *testing.B) {
	pages := &generatedPages{count: b.N, step: 1}
	b.ReportAllocs()
	n := 0
	b.ResetTimer()
	for job, err := range (&listMerge{prefix: generatedPrefix}).mergeJobs("bkt", generatedJobs(b.N, 1), pages) {
		if err != nil || job.Object == nil {
			b.Fatal(fmt.Sprint(job, err))
		}
		n++
	}
	if n != b.N {
		b.Fatalf("%d jobs, want %d", n, b.N)
	}
}
