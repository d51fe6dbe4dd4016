package retrysim

import (
	"slices"
	"sort"
	"time"
)

// The model of a bucket, after https://cloud.google.com/storage/docs/request-rate. A bucket
// accepts about 1,000 writes per second at first. Its index of names is sorted. The service divides
// a range of the index with much load between servers. The page says that this takes minutes, and
// that a load that doubles within 20 minutes is not too fast.
const (
	rangeCapacity = 1000             // writes per second of a range
	splitAfter    = 20 * time.Minute // load of a range before it is divided
	splitLoad     = 0.8              // of rangeCapacity, which counts as load
	recentKeys    = 255              // keys of which the median divides a range
)

// bucket decides which writes are accepted.
type bucket struct {
	ranges []*keyRange // sorted; the first starts at 0
	second int64       // the one that is counted
}

// keyRange is a part of the index of names. A name is a number from 0 to 1.
type keyRange struct {
	from    float64
	server  *server
	writes  int64 // of this second, refused ones included
	loaded  int64 // seconds with load, less those without
	recent  [recentKeys]float64
	written int64
}

func newBucket() *bucket { return &bucket{ranges: []*keyRange{newKeyRange(0, 0)}} }

func newKeyRange(from float64, now int64) *keyRange {
	s := newServer(Scenario{Capacity: rangeCapacity})
	s.last = now
	return &keyRange{from: from, server: s}
}

// admit returns whether a write of a name is accepted. now must not decrease.
func (b *bucket) admit(now int64, key float64) bool {
	for second := now / int64(time.Second); b.second < second; b.second++ {
		b.endSecond(now)
	}
	i := sort.Search(len(b.ranges), func(i int) bool { return b.ranges[i].from > key }) - 1
	r := b.ranges[i]
	r.recent[r.written%recentKeys] = key
	r.written++
	r.writes++
	return r.server.admit(now, 1) == 1
}

// endSecond divides the ranges that had load for long enough.
func (b *bucket) endSecond(now int64) {
	for _, r := range slices.Clone(b.ranges) {
		if float64(r.writes) >= splitLoad*rangeCapacity {
			r.loaded++
		} else {
			r.loaded = max(r.loaded-1, 0)
		}
		r.writes = 0
		if r.loaded >= int64(splitAfter/time.Second) {
			b.split(r, now)
		}
	}
}

// split divides a range at the median of its recent names. The load of random names is thereby
// halved. Sequential names all go to the second half.
func (b *bucket) split(r *keyRange, now int64) {
	keys := slices.Sorted(slices.Values(r.recent[:min(r.written, recentKeys)]))
	middle := keys[len(keys)/2]
	if middle == r.from {
		return // one name
	}
	half := newKeyRange(middle, now)
	half.server.credit = 0
	r.loaded, r.written = 0, 0
	b.ranges = slices.Insert(b.ranges, slices.Index(b.ranges, r)+1, half)
}
