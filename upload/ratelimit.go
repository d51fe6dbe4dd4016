package upload

import (
	"time"

	"gcsup/upload/internal/engine"
)

// RateLimit limits the object data of all uploads that use it, in bytes per second. The
// uploads take turns, however many connections each of them has. A RateLimit is safe for
// concurrent use.
//
// An upload that waits for its turn is not stalled, see [Options].StallTimeout. It ends at
// once when its context is done.
type RateLimit struct{ limit *engine.RateLimit }

// Unlimited is the rate of a [RateLimit] that limits nothing.
const Unlimited int64 = engine.Unlimited

// NewRateLimit returns a limit of bytesPerSecond. 0 and less pause all uploads, and
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
