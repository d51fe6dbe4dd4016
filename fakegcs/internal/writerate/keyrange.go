package writerate

import (
	"slices"
	"sort"
	"time"
)

const (
	load        = 0.8         // share of the rate of a range that counts as load
	burst       = 0.1         // seconds of the rate that may come at once
	recentNames = 63          // names of which the median divides a range
	span        = time.Second // in which writes are counted
)

// bucket is the index of the names of a bucket.
type bucket struct {
	ranges []*keyRange // sorted; the first starts at ""
}

// find returns the number of the range of a name.
func (b *bucket) find(name string) int {
	return sort.Search(len(b.ranges), func(i int) bool { return b.ranges[i].from > name }) - 1
}

// split divides a range at the median of its recent names. The load of random names is thereby
// halved. Names that grow all go to the second half. A range in which one name gets most of the writes
// stays.
func (b *bucket) split(i int, now time.Time) {
	r := b.ranges[i]
	names := slices.Sorted(slices.Values(r.recent))
	r.loaded, r.recent = 0, nil
	for _, middle := range names[len(names)/2:] {
		if middle > names[0] {
			b.ranges = slices.Insert(b.ranges, i+1, newKeyRange(middle, now, 0))
			return
		}
	}
}

// keyRange is a part of the index.
type keyRange struct {
	from   string
	credit float64 // writes that may come now
	last   time.Time
	begin  time.Time     // of the second whose writes are counted
	writes float64       // in that second, refused ones included
	loaded time.Duration // time with load, less the time without
	recent []string      // the last names, at most recentNames
	next   int           // index in recent of the oldest, if recent is full
}

// newKeyRange returns a range that has the credit of a burst at that rate.
func newKeyRange(from string, now time.Time, perSecond float64) *keyRange {
	return &keyRange{from: from, last: now, begin: now, credit: most(perSecond)}
}

// most returns the highest credit at that rate.
func most(perSecond float64) float64 { return max(perSecond*burst, 1) }

// pass moves the time of the range. A clock that was set back stands still.
func (r *keyRange) pass(now time.Time, perSecond float64) {
	if now.Before(r.last) {
		r.begin = r.begin.Add(now.Sub(r.last))
		r.last = now
		return
	}
	r.credit = min(r.credit+perSecond*now.Sub(r.last).Seconds(), most(perSecond))
	r.last = now
	spans := now.Sub(r.begin) / span
	if spans == 0 {
		return
	}
	// Only the first of these seconds had writes.
	idle := spans
	if r.writes >= load*perSecond {
		r.loaded += span
		idle--
	}
	r.loaded = max(r.loaded-idle*span, 0)
	r.writes, r.begin = 0, r.begin.Add(spans*span)
}

// note records a write of a name.
func (r *keyRange) note(name string) {
	r.writes++
	if len(r.recent) < recentNames {
		r.recent = append(r.recent, name)
		return
	}
	r.recent[r.next] = name
	r.next = (r.next + 1) % recentNames
}
