package retrysim

import (
	"math/rand/v2"
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
	ranges     []*keyRange // sorted; the first starts at 0
	second     int64       // the one that is counted
	random     *rand.Rand  // for names
	sequential bool        // names grow with the time
}

// keyRange is a part of the index of names. A name is a number from 0 to 1.
type keyRange struct {
	from   float64
	server *server
	writes int64     // of this second, refused ones included
	loaded int64     // seconds with load, less those without
	recent []float64 // the last recentKeys keys
}

func newBucket(random *rand.Rand) service {
	return &bucket{ranges: []*keyRange{newKeyRange(0)}, random: random}
}

func newSequentialBucket(random *rand.Rand) service {
	return &bucket{ranges: []*keyRange{newKeyRange(0)}, random: random, sequential: true}
}

func newKeyRange(from float64) *keyRange {
	return &keyRange{from: from, server: newServer(Scenario{Capacity: rangeCapacity})}
}

func (b *bucket) perSecond() int64 { return int64(len(b.ranges)) * rangeCapacity }

// admit decides on count writes of one name.
func (b *bucket) admit(now, count int64) int64 {
	for second := now / int64(time.Second); b.second < second; b.second++ {
		b.endSecond(now)
	}
	key := b.random.Float64()
	if b.sequential {
		key = float64(now) / float64(maxTime)
	}
	r := b.ranges[sort.Search(len(b.ranges), func(i int) bool { return b.ranges[i].from > key })-1]
	if len(r.recent) == recentKeys {
		r.recent = r.recent[1:]
	}
	r.recent = append(r.recent, key)
	r.writes += count
	return r.server.admit(now, count)
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
	middle := slices.Sorted(slices.Values(r.recent))[len(r.recent)/2]
	if middle == r.from {
		return // one name
	}
	half := newKeyRange(middle)
	half.server.credit, half.server.last = 0, now
	r.loaded, r.recent = 0, nil
	b.ranges = slices.Insert(b.ranges, slices.Index(b.ranges, r)+1, half)
}
