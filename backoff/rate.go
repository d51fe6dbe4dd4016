package backoff

import (
	"math"
	"sync"
	"time"
)

// The rates of a bucket that is not known, per second. The service promises about 1,000 writes
// (https://cloud.google.com/storage/docs/request-rate).
const (
	firstRateMin = 100
	firstRateMax = 1000
	lowestRate   = 1  // that can be set
	lowestFound  = 10 // after any number of 429s, unless less was set
)

const (
	rateDoubling  = 20 * time.Minute // the service wants a rate above firstRateMax to double no faster
	rateRegrowth  = 5 * time.Minute  // in which a lower rate doubles
	rateRecovery  = time.Minute      // how long the rate grows back to its value before a 429
	rateDiscovery = 5 * time.Minute  // the same, if a lower rate was refused since
	rateCut       = 0.9              // of the rate, after a 429
	rateDeepCut   = 0.5              // of the rate, if most requests are refused
	knownCut      = 0.5              // of the rate that the rate grows back to, after another 429
	knownOutage   = 0.9              // the same, if all requests are refused

	// Requests that had reserved their time when the rate was cut may still be refused. Replies
	// count again half of rateReaction after their time, and cut the rate after all of it.
	rateReaction = time.Second

	// rateBacklog limits how long reserved times are waited for.
	rateBacklog = 5 * time.Second

	// rateBurst is how late requests may be without lowering the rate.
	rateBurst = 20 * time.Millisecond
)

// A Rate throttles the requests to a service that limits their rate, such as the writes to a
// bucket of Cloud Storage. Without a 429, Limit or Set it throttles nothing.
//
// After the first 429, requests are throttled at the rate that was just accepted, but at least 100 and
// at most 1,000 per second. The rate grows back to 1,000 within a minute, and then at most doubles
// every 20 minutes, as the request-rate guidelines ask for
// (https://cloud.google.com/storage/docs/request-rate). A later 429 multiplies the rate by the share of
// the requests that were accepted since the last one, between 0.5 and 0.9, at most once a second.
// Within a minute, the rate then grows back to a target, its value before the 429. If several 429s follow
// each other, each halves the target, or multiplies it by 0.9 if all requests were refused, which means an
// outage. The rate then grows back to the target within 5 minutes. The target is at least 100.
// The rate itself is at least 10, because the [Breaker] limits requests in an outage. When the rate has
// grown back to a target below 1,000, it doubles within 5 minutes up to 1,000 per second, because the
// guidelines ask for no ramp below 1,000. Only accepted requests let the rate grow: it does not grow in a
// program that makes fewer requests, or none.
//
// Several machines that write to one bucket each take a share, see [Rate.Share]. [Rate.Limit] sets a
// rate that is not exceeded.
//
// A Rate has no clock: the caller passes the time. Times that go backwards count as a clock that
// stands still. The zero value is ready to use. A Rate is safe for concurrent use, and must not
// be copied after its first use.
type Rate struct {
	mu       sync.Mutex
	clock    steadyClock
	machines float64 // that share the rate; 0 means 1
	jitter   uint64  // state of the random numbers for the times of one of several machines
	rate     float64 // per second, of all machines; 0 if nothing is throttled
	most     float64 // the rate does not grow above it; 0 means no limit
	known    float64 // the rate grows back to it
	slope    float64 // per second, for growing back

	lastRefused time.Time

	next time.Duration // when the next request may start
	cut  time.Duration // when the rate was last cut, and all reserved times had passed

	arrivals arrivals // before the first 429

	queue *rateQueue // the requests that wait; nil before the first one

	// Replies since the rate was last cut, without those to requests that were under way.
	accepted, refused float64
}

// Share declares that this program is one of several machines that make requests to the same
// bucket. machine counts from 0. Each gets 1/machines of the rate. Its requests are at random
// times, so that the machines do not make theirs together; machine selects the random numbers.
func (r *Rate) Share(machine, machines int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.machines = float64(max(machines, 1))
	r.jitter = mix(uint64(machine))
}

// Set throttles requests at perSecond, the rate of all machines together, as if it had been
// found before. 0 throttles nothing until the next 429, unless there is a limit.
func (r *Rate) Set(perSecond float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set(perSecond)
}

// Limit throttles requests from now on. perSecond is the limit of all machines together. A 429
// lowers the rate, and it grows back to the limit. 0 removes the limit: the rate then grows as
// after a 429.
func (r *Rate) Limit(perSecond float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most = 0
	if perSecond > 0 { // false for NaN
		r.most = max(perSecond, lowestRate)
		r.set(r.rate)
	}
}

// set is Set. The caller holds r.mu.
func (r *Rate) set(perSecond float64) {
	if !(perSecond > 0) { // true for NaN too
		perSecond = r.most
	}
	r.rate, r.slope = 0, 0
	if perSecond > 0 {
		r.rate = r.limited(max(perSecond, lowestRate))
	}
	r.known = r.rate
}

// limited returns a rate, or the limit if that is lower. The caller holds r.mu.
func (r *Rate) limited(perSecond float64) float64 {
	if r.most > 0 {
		return min(perSecond, r.most)
	}
	return perSecond
}

// PerSecond returns the rate of all machines together, or 0 if nothing is throttled. A program can
// save it, and restore it with Set.
func (r *Rate) PerSecond() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rate
}

// LastRefused returns the time of the last call of Refused. It is zero if there was none.
func (r *Rate) LastRefused() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastRefused
}

// Reserve returns how long the caller must wait before its next request. Each call reserves the
// time of one request, so that the wait grows with the number of callers that wait. A caller that
// does not make the request calls [Rate.Cancel]. [Rate.Wait] waits in a queue, and suits a program with
// many requests that can be canceled.
func (r *Rate) Reserve(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	past := r.clock.read(now)
	if r.rate == 0 {
		return 0
	}
	r.next = max(r.next, past-rateBurst)
	wait := max(r.next-past, 0)
	r.next += time.Duration(r.spacing() * float64(time.Second))
	return wait
}

// Cancel gives back the time of a request that will not be made.
func (r *Rate) Cancel() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rate > 0 {
		r.next -= time.Duration(r.share() / r.rate * float64(time.Second)) // Reserve permits no burst
	}
}

// spacing returns the seconds between two requests of this machine. If there are other machines,
// they are between half and one and a half of the mean. The caller holds r.mu.
func (r *Rate) spacing() float64 {
	mean := r.share() / r.rate
	if r.machines <= 1 {
		return mean
	}
	r.jitter += 0x9e3779b97f4a7c15
	return mean * (0.5 + float64(mix(r.jitter)>>11)/(1<<53))
}

// Accepted records that the service accepted a request. It must be called before the first 429,
// too.
func (r *Rate) Accepted(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	past := r.clock.read(now)
	if r.rate == 0 {
		r.arrivals.add(past)
		return
	}
	if past-r.cut >= rateReaction/2 {
		r.accepted++
	}
	// At the full rate, this machine makes one request in that many seconds.
	seconds := r.share() / r.rate
	if r.rate < r.known {
		r.rate = min(r.rate+r.slope*seconds, r.known)
		return
	}
	doubling := rateDoubling
	if r.rate < firstRateMax {
		doubling = rateRegrowth
	}
	r.rate = r.limited(r.rate * math.Exp2(seconds/doubling.Seconds()))
}

// Refused records that the service answered 429. It reports whether this was the first one, so that
// requests are throttled from now on.
func (r *Rate) Refused(now time.Time) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	past := r.clock.read(now)
	r.lastRefused = now
	recovery := rateRecovery
	switch since := past - r.cut; {
	case r.rate == 0:
		first = true
		r.rate = min(max(r.arrivals.perSecond(past)*r.share(), firstRateMin), firstRateMax)
		r.known = firstRateMax
		r.next = past
		if r.machines > 1 {
			r.next += time.Duration((r.spacing() - r.share()/r.rate/2) * float64(time.Second))
		}
	case since < rateReaction/2:
		return false
	case since < rateReaction:
		r.refused++
		return false
	default:
		r.refused++
		// The service may refuse all requests for some seconds. They must not determine the rate
		// for long.
		share := r.accepted / (r.accepted + r.refused)
		decay := knownCut
		if r.accepted == 0 {
			decay = knownOutage // a service that limits the rate accepts some requests
		}
		if r.known = r.limited(max(r.rate, r.known*decay, firstRateMin)); r.known > r.rate {
			recovery = rateDiscovery
		}
		r.rate = max(r.rate*min(max(share, rateDeepCut), rateCut), min(r.rate, lowestFound))
	}
	r.slope = (r.known - r.rate) / recovery.Seconds()
	r.cut = min(max(r.next, past), past+rateBacklog)
	r.accepted, r.refused = 0, 0
	return first
}

func (r *Rate) share() float64 { return max(r.machines, 1) }
