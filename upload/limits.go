package upload

import (
	"iter"
	"maps"
	"sync"
	"time"

	"gcsup/backoff"
	"gcsup/upload/internal/atrisk"
	"gcsup/upload/internal/engine"
)

// AtRisk bounds how many bytes must be sent again if the process dies now, for all uploads that
// share it. The bound begins with 16 MiB, and grows to 64 MiB with the bytes that are committed.
// It is twice the number of bytes that were committed in the last five seconds, if that is more.
// Beyond the bound no file, part or session begins, and what has begun continues.
//
//   - A part of a multipart upload, see [ByMultipart], and a small file that is sent in one
//     request, are at risk as a whole, from the start of the request until its reply. A part that
//     is larger than the bound begins only if nothing else is at risk.
//   - In a session, 256 KiB and the bytes in its socket are at risk, because the service keeps the
//     bytes that arrived. Linux reports how many bytes are in a socket. On other systems 1 MiB
//     counts for each session.
//
// While an upload is paused, the bytes of a request that has begun stay at risk, and count.
// Uploaders that share an AtRisk should therefore share the [RateLimit], too: otherwise an Uploader
// that is paused can make the others wait.
//
// The zero value is ready to use. An AtRisk is safe for concurrent use, and must not be copied.
type AtRisk struct{ bound atrisk.Bound }

// RateLimit limits the object data of all uploads that use it, in bytes per second. The
// uploads take turns, however many connections each of them has. A RateLimit is safe for
// concurrent use.
//
// An upload that waits for its turn is not stalled, see [Options].StallTimeout. It ends at
// once when its context is done.
type RateLimit struct{ limit *engine.RateLimit }

// Unlimited is the rate of a [RateLimit] that limits nothing.
const Unlimited int64 = engine.Unlimited

// NewRateLimit returns a limit of bytesPerSecond. 0 or less pauses all uploads, and
// [Unlimited] limits nothing.
func NewRateLimit(bytesPerSecond int64) *RateLimit {
	return &RateLimit{engine.NewRateLimit(bytesPerSecond)}
}

// Limit returns the limit in bytes per second: [Unlimited] if there is none, or 0 if
// uploads are paused.
func (l *RateLimit) Limit() int64 { return l.limit.Rate() }

// SetLimit changes the limit to bytesPerSecond, as [NewRateLimit] does. Uploads under
// way have the new rate within a second. A pause may take any time. If the service
// replies early or closes a connection meanwhile, the request is repeated after the pause, with
// the whole budget for retries. No request with data begins in a pause.
func (l *RateLimit) SetLimit(bytesPerSecond int64) { l.limit.SetLimit(bytesPerSecond) }

// shared returns the limit, or nil if l is nil.
func (l *RateLimit) shared() *engine.RateLimit {
	if l == nil {
		return nil
	}
	return l.limit
}

// held returns the total time for which the limit held bytes back.
func (l *RateLimit) held() time.Duration { return l.shared().Held() }

// RequestRates throttles the requests that change objects, for each bucket separately, see
// [backoff.Rate]. Before the first 429 of a bucket nothing is throttled, unless
// Limit or Set is called. RequestRates throttles the requests that the service counts: the start of a
// session or of a multipart upload, a small object, a deletion and a composition.
//
// Requests wait in the order in which they are ready, as long as their contexts permit. The first 429 of a
// bucket is reported by an event of the kind Warning, and the time that an upload waited is
// [Result].Throttled. A 429 that concerns one object only does not count.
//
// Uploaders can share a RequestRates. The zero value is ready to use. It is safe for
// concurrent use, and must not be copied.
type RequestRates struct {
	off bool

	mu                sync.Mutex
	buckets           map[string]*backoff.Rate
	machine, machines int
	limit             float64
}

// NoRequestRates throttles nothing, even after a 429. Its methods have no effect.
var NoRequestRates = &RequestRates{off: true}

// Share declares that this program is one of several machines that upload to the same buckets. machine
// counts from 0. Each machine gets an equal share of the rate of a bucket. The numbers may change while
// uploads run.
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

// Limit throttles the requests to each bucket from now on. perSecond is the maximum of all machines
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

// Set throttles the requests to a bucket. perSecond is the rate of all machines together, for
// example one that an earlier process found. 0 throttles nothing until the next 429.
func (r *RequestRates) Set(bucket string, perSecond float64) {
	if !r.off {
		r.bucket(bucket).Set(perSecond)
	}
}

// All returns the buckets whose requests are throttled, and their rates. A program can save
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

// pacing returns the function bucket, or nil if nothing is throttled.
func (r *RequestRates) pacing() func(bucket string) *backoff.Rate {
	if r.off {
		return nil
	}
	return r.bucket
}
