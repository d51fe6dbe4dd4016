package pagecache

import (
	"errors"
	"slices"
	"testing"
)

// TestPageCache checks that only pages are dropped that the reads have added.
func TestPageCache(t *testing.T) {
	const w, size = cacheWindow, 3*cacheWindow + 5
	var pieces []span
	for i := range int64(maxRuns + 1) {
		pieces = append(pieces, span{2*i + 1, 2*i + 2})
	}
	type step struct {
		read, release span
		want          []span // dropped
	}
	for _, test := range []struct {
		name   string
		cached []span // before
		steps  []step
	}{
		{"nothing was cached", nil, []step{{read: span{0, 10}}, {release: span{0, w}, want: []span{{0, w}}}}},
		{"a release across windows", nil, []step{{read: span{0, size}}, {release: span{0, size}, want: []span{{0, size}}}}},
		{"all was cached", []span{{0, size}}, []step{{read: span{0, size}}, {release: span{0, size}}}},
		{"some was cached", []span{{100, 200}, {w - 50, w + 50}}, []step{
			{read: span{0, 2 * w}}, {release: span{0, 2 * w}, want: []span{{0, 100}, {200, w - 50}, {w + 50, 2 * w}}},
		}},
		{"the middle of a window", nil, []step{
			{read: span{0, w}}, {release: span{100, 200}, want: []span{{100, 200}}}, {release: span{0, w}, want: []span{{0, w}}},
		}},
		{"what the system read ahead", nil, []step{{read: span{w - 1, w}}, {read: span{2*w - 1, 2*w + 1}}, {release: span{0, size}, want: []span{{0, size}}}}},
		{"what the system may not have read", nil, []step{{read: span{0, 1}}, {release: span{0, size}, want: []span{{0, 2 * w}}}}},
		{"too many pieces", pieces, []step{{read: span{0, 1}}, {release: span{0, size}, want: []span{{w, 2 * w}}}}},
	} {
		resident := slices.Clone(test.cached)
		var dropped []span
		absent := func(r span) (absent []span, _ error) {
			at := r.from
			for _, in := range resident {
				if in.to <= at || in.from >= r.to {
					continue
				}
				if in.from > at {
					absent = append(absent, span{at, in.from})
				}
				at = in.to
			}
			if at < r.to {
				absent = append(absent, span{at, r.to})
			}
			return absent, nil
		}
		c := cacheOf(size, absent, func(r span) { dropped = append(dropped, r) })
		for i, s := range test.steps {
			dropped = nil
			if s.read.len() > 0 {
				c.reading(s.read)
			}
			if s.release.len() > 0 {
				c.Release(s.release.from, s.release.to)
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
	absent := func(span) ([]span, error) { asked++; return nil, errors.ErrUnsupported }
	c := cacheOf(2*cacheWindow, absent, func(r span) { t.Errorf("%v was dropped", r) })
	c.reading(span{0, 1})
	c.reading(span{cacheWindow, cacheWindow + 1})
	c.Release(0, 2*cacheWindow)
	if asked != 1 {
		t.Errorf("the system was asked %d times", asked)
	}
}

// TestPageCacheOfHugeFile checks that the memory for a file does not grow with its size, and that all of it
// is dropped.
func TestPageCacheOfHugeFile(t *testing.T) {
	const size = 5<<40 + 1
	var next int64 // to be dropped
	c := cacheOf(size, func(r span) ([]span, error) { return []span{r}, nil }, func(r span) {
		if r.from != next {
			t.Errorf("%v was dropped, want a range from %d", r, next)
		}
		next = r.to
	})
	const step = 1 << 30
	for at := int64(0); at < size; at += step {
		r := span{at, min(at+step, size)}
		c.reading(r)
		c.Release(r.from, r.to)
	}
	if n := len(c.added); n > maxWindows || next != size {
		t.Errorf("%d windows are remembered, want at most %d, and %d bytes are dropped", n, maxWindows, next)
	}
}
