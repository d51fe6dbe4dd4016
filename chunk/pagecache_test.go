package chunk

import (
	"errors"
	"slices"
	"testing"
)

// TestPageCache checks that only pages are dropped that the reads have added.
func TestPageCache(t *testing.T) {
	const w, size = cacheWindow, 3*cacheWindow + 5
	var pieces []Range
	for i := range int64(maxRuns + 1) {
		pieces = append(pieces, Range{2*i + 1, 2*i + 2})
	}
	type step struct {
		read, release Range
		want          []Range // dropped
	}
	for _, test := range []struct {
		name   string
		cached []Range // before
		steps  []step
	}{
		{"nothing was cached", nil, []step{{read: Range{0, 10}}, {release: Range{0, w}, want: []Range{{0, w}}}}},
		{"a release across windows", nil, []step{{read: Range{0, size}}, {release: Range{0, size}, want: []Range{{0, size}}}}},
		{"all was cached", []Range{{0, size}}, []step{{read: Range{0, size}}, {release: Range{0, size}}}},
		{"some was cached", []Range{{100, 200}, {w - 50, w + 50}}, []step{
			{read: Range{0, 2 * w}}, {release: Range{0, 2 * w}, want: []Range{{0, 100}, {200, w - 50}, {w + 50, 2 * w}}},
		}},
		{"the middle of a window", nil, []step{
			{read: Range{0, w}}, {release: Range{100, 200}, want: []Range{{100, 200}}}, {release: Range{0, w}, want: []Range{{0, w}}},
		}},
		{"what the system read ahead", nil, []step{{read: Range{w - 1, w}}, {read: Range{2*w - 1, 2*w + 1}}, {release: Range{0, size}, want: []Range{{0, size}}}}},
		{"what the system may not have read", nil, []step{{read: Range{0, 1}}, {release: Range{0, size}, want: []Range{{0, 2 * w}}}}},
		{"too many pieces", pieces, []step{{read: Range{0, 1}}, {release: Range{0, size}, want: []Range{{w, 2 * w}}}}},
	} {
		resident := slices.Clone(test.cached)
		var dropped []Range
		absent := func(r Range) (absent []Range, _ error) {
			at := r.From
			for _, in := range resident {
				if in.To <= at || in.From >= r.To {
					continue
				}
				if in.From > at {
					absent = append(absent, Range{at, in.From})
				}
				at = in.To
			}
			if at < r.To {
				absent = append(absent, Range{at, r.To})
			}
			return absent, nil
		}
		c := pageCacheOf(size, absent, func(r Range) { dropped = append(dropped, r) })
		for i, s := range test.steps {
			dropped = nil
			if s.read.Len() > 0 {
				c.reading(s.read)
			}
			if s.release.Len() > 0 {
				c.release(s.release)
			}
			if !slices.Equal(dropped, s.want) {
				t.Errorf("%s: step %d drops %v, want %v", test.name, i, dropped, s.want)
			}
		}
	}
}

// TestPageCacheUnknown checks that nothing is dropped if the system does not report what is cached.
func TestPageCacheUnknown(t *testing.T) {
	asked := 0
	absent := func(Range) ([]Range, error) { asked++; return nil, errors.ErrUnsupported }
	c := pageCacheOf(2*cacheWindow, absent, func(r Range) { t.Errorf("%v was dropped", r) })
	c.reading(Range{0, 1})
	c.reading(Range{cacheWindow, cacheWindow + 1})
	c.release(Range{0, 2 * cacheWindow})
	if asked != 1 {
		t.Errorf("the system was asked %d times", asked)
	}
}

// TestPageCacheOfHugeFile checks that the memory for a file does not grow with its size, and that all of it
// is dropped.
func TestPageCacheOfHugeFile(t *testing.T) {
	const size = 5<<40 + 1
	var next int64 // to be dropped
	c := pageCacheOf(size, func(r Range) ([]Range, error) { return []Range{r}, nil }, func(r Range) {
		if r.From != next {
			t.Errorf("%v was dropped, want a range from %d", r, next)
		}
		next = r.To
	})
	const step = 1 << 30
	for at := int64(0); at < size; at += step {
		r := Range{at, min(at+step, size)}
		c.reading(r)
		c.release(r)
	}
	if n := len(c.added); n > maxWindows || next != size {
		t.Errorf("%d windows are remembered, want at most %d, and %d bytes are dropped", n, maxWindows, next)
	}
}
