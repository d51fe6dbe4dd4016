package backoff

import (
	"sync"
	"time"
)

// The numbers of the bucket are times: the time in which a token comes in by
// itself is one token.
const (
	token       = 30 * time.Second
	capacity    = 4 * token
	retryGain   = 2 * token
	requestGain = token / 10
)

// A Throttle is a token bucket that all the uploads, or other users of a
// service, in a process share, so that many that fail at once do not multiply
// the requests to a service that is down.
//
// The bucket starts full with 4 tokens, and one more comes in every 30 s. A
// retry takes one. A retry that succeeds gives back 2, so that after an outage
// the gate opens exponentially and no herd runs through it; a request that
// succeeds at the first try gives a tenth. With the zero Policy a lone upload
// always finds a token for each of its five retries, 1, 3, 7, 15 and 31 s
// after the first request, while 32 uploads make 37 requests in 32 s of total
// outage where five retries each would have made 192.
//
// The zero value is ready to use. A Throttle is safe for concurrent use. A nil
// *Throttle allows everything.
type Throttle struct {
	mu   sync.Mutex
	full time.Time // when the bucket will be full, if nothing is taken until then
}

// Allow takes a token and returns true, or returns false if there is none. Ask
// when the wait before a retry is over; a first try needs no token.
func (t *Throttle) Allow() bool { return t.AllowAt(time.Now()) }

// AllowAt is Allow at the time now. Times must not go back.
func (t *Throttle) AllowAt(now time.Time) bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	missing := max(t.full.Sub(now), 0)
	if missing+token > capacity {
		return false
	}
	t.full = now.Add(missing + token)
	return true
}

// Succeeded gives back what a successful request earns; retry tells whether it
// was a retry.
func (t *Throttle) Succeeded(retry bool) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if retry {
		t.full = t.full.Add(-retryGain)
	} else {
		t.full = t.full.Add(-requestGain)
	}
}
