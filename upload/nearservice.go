package upload

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"gcsup/session"
)

// A service that is near usually needs only one connection. Whether it limits each connection is
// known only after a first request.
const (
	// nearReply is the response time below which the service counts as near: a single
	// connection to it is usually fast enough.
	nearReply = 3 * time.Millisecond

	// nearReplies is the number of replies after which it is known whether the service is
	// near.
	nearReplies = 3

	// firstBytes is the size of the request that measures a single connection to a near
	// service. fastRate is the rate, in bytes per second, at which one connection is fast
	// enough.
	firstBytes = 8 << 20
	fastRate   = 64 << 20
)

// whyNear returns a reason to use one connection if the service is near and not known
// to limit each connection. Otherwise it returns nil.
func (s *partsShared) whyNear() error {
	fastest, rate := s.fastestReply.get(), s.nearRate.Load()
	if fastest == 0 || fastest >= nearReply || rate > 0 && rate < fastRate {
		return nil
	}
	why := reason{text: fmt.Sprintf("the service answers within %v, so that one connection is fast enough", fastest.Round(10*time.Microsecond))}
	if rate == 0 {
		why.kind = unmeasured
	}
	return why
}

// slowConnection is the error of a first request that was slow although the service is near.
// rate is in bytes per second.
type slowConnection struct{ rate int64 }

func (e *slowConnection) Error() string {
	return fmt.Sprintf("one connection reaches only %.1f MiB/s, so that the file is sent in parts", float64(e.rate)/(1<<20))
}

// measureFirst makes the first request measure the rate of a single connection to a near
// service. why is the reason to use one connection. If the rate is high enough, it is
// reported, and otherwise the request ends with a slowConnection.
func (j *job) measureFirst(why reason) {
	limit := j.u.opts.RateLimit
	held := limit.held()
	j.measure = &measurement{firstBytes, func(n int64, took time.Duration) error {
		rate := int64(math.MaxInt64)
		limited := limit.held()-held >= took/10
		if took > 0 && n >= firstBytes/2 && !limited { // otherwise it counts as fast
			rate = int64(float64(n) / took.Seconds())
		}
		if j.u.parts.nearRate.Store(rate); rate < fastRate {
			return &slowConnection{rate}
		}
		j.reportUndivided(why)
		return nil
	}}
}

// restartInParts starts over in parts after the first request showed that one connection is
// slow. The saved upload is deleted before its session. After a crash in between, the
// session expires.
func (j *job) restartInParts(ctx context.Context, uri session.URI, slow *slowConnection) error {
	j.events.post(Event{Kind: Discarded, Cause: slow.Error()})
	if err := j.journal.discard(); err != nil {
		return err
	}
	j.wire().drop(ctx, uri)
	j.unresume()
	j.source.Restart()
	return j.fresh(ctx)
}

// fastestReply is the shortest response time of the service.
type fastestReply struct {
	ns      atomic.Int64 // 0 until there is a reply
	replies atomic.Int64 // how many were measured
}

func (f *fastestReply) get() time.Duration { return time.Duration(f.ns.Load()) }

func (f *fastestReply) note(d time.Duration) {
	defer f.replies.Add(1)
	for {
		was := f.ns.Load()
		if was > 0 && was <= int64(d) || f.ns.CompareAndSwap(was, max(int64(d), 1)) {
			return
		}
	}
}
