package upload

import (
	"iter"
	"maps"
	"sync"

	"gcsup/backoff"
)

// RequestRates pace the requests that change objects, for each bucket separately, see
// [backoff.Rate]. Before the first 429 of a bucket nothing is paced, unless [RequestRates.Limit] is
// called. The requests of an upload that count are those that the service counts: the one that starts a
// session or a multipart upload, or that sends a small object, and deletions and compositions.
//
// Requests wait in the order in which they are ready, as long as their contexts permit. The first 429 of a
// bucket is reported by an event of the kind Warning, and the time that an upload waited is
// [Result].Paced. A 429 that concerns one object only does not count.
//
// Uploaders can share RequestRates. The zero value is ready to use. RequestRates are safe for
// concurrent use, and must not be copied.
type RequestRates struct {
	off bool

	mu                sync.Mutex
	buckets           map[string]*backoff.Rate
	machine, machines int
	limit             float64
}

// NoRequestRates pace nothing, even after a 429. Their methods have no effect.
var NoRequestRates = &RequestRates{off: true}

// Share sets that this is one of several machines that upload to the same buckets. machine counts from
// 0. Each machine gets an equal share of the rate of a bucket. The numbers may change while uploads run.
func (r *RequestRates) Share(machine, machines int) {
	if r.off {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if machine == r.machine && machines == r.machines {
		return
	}
	r.machine, r.machines = machine, machines
	for _, rate := range r.buckets {
		rate.Share(machine, machines)
	}
}

// Limit paces the requests to each bucket from now on, at most at a rate per second of all machines
// together. A 429 lowers the rate, which then grows back. 0 removes the limit.
func (r *RequestRates) Limit(perSecond float64) {
	if r.off {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = perSecond
	for _, rate := range r.buckets {
		rate.Limit(perSecond)
	}
}

// Set paces the requests to a bucket at a rate per second of all machines together, for example
// one that an earlier process found. 0 paces nothing until the next 429.
func (r *RequestRates) Set(bucket string, perSecond float64) {
	if !r.off {
		r.bucket(bucket).Set(perSecond)
	}
}

// All returns the buckets whose requests are paced, and their rates. A program can save
// [backoff.Rate.PerSecond], and restore it with Set in another process.
func (r *RequestRates) All() iter.Seq2[string, *backoff.Rate] {
	return func(yield func(string, *backoff.Rate) bool) {
		r.mu.Lock()
		buckets := maps.Clone(r.buckets)
		r.mu.Unlock()
		for name, rate := range buckets {
			if rate.PerSecond() > 0 && !yield(name, rate) {
				return
			}
		}
	}
}

// bucket returns the rate of a bucket.
func (r *RequestRates) bucket(name string) *backoff.Rate {
	r.mu.Lock()
	defer r.mu.Unlock()
	rate := r.buckets[name]
	if rate == nil {
		rate = new(backoff.Rate)
		if r.machines > 0 {
			rate.Share(r.machine, r.machines)
		}
		rate.Limit(r.limit)
		if r.buckets == nil {
			r.buckets = map[string]*backoff.Rate{}
		}
		r.buckets[name] = rate
	}
	return rate
}

// pacing returns the function bucket, or nil if nothing is paced.
func (r *RequestRates) pacing() func(bucket string) *backoff.Rate {
	if r.off {
		return nil
	}
	return r.bucket
}
