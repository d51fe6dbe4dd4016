package engine

import (
	"context"
	"sync/atomic"
	"time"

	"gcsup/backoff"
	"gcsup/session"
	"gcsup/upload/internal/atrisk"
)

// Uplink is how the requests of one upload reach the service, and what they report to. The
// parts of a file share it. It does not change, except the permit.
type Uplink struct {
	Client  *session.Client
	Policy  backoff.Policy
	Breaker *backoff.Breaker
	Budget  *SharedBudget
	Limit   *RateShare                        // nil if there is no limit
	AtRisk  *atrisk.Bound                     // nil if the bytes at risk have no bound
	Rate    func(bucket string) *backoff.Rate // of the requests that change objects; nil if they are not paced
	Replied func(time.Duration)               // called after a request without object data was answered; may be nil

	BriefObject  bool  // insertions ask only for the fields of an object that Transfer.Verify needs, and its generation
	ChunkSize    int64 // maximum size of a request; 0 means no limit
	StallTimeout time.Duration
	StallRate    int64

	Notes Notes
	Tally *Tally
	Place Place // nil if the number of files at a time is fixed

	// Permit is needed for each request; nil if none is. It is set when the lease of the saved
	// upload is acquired, and removed if another process has the lease and will not remove what
	// the upload stored.
	Permit Permit
}

// Tally has the sums over the transfers of one upload.
type Tally struct {
	Requests atomic.Int64
	Sent     atomic.Int64 // bytes handed to the network, also by the current requests
	Resent   atomic.Int64 // those of them that were handed over before
	Reread   atomic.Int64 // bytes read only for a checksum
	Paced    atomic.Int64 // how long requests waited for the rate of their bucket, in nanoseconds
}

// Permit allows requests while it is valid.
type Permit interface {
	// Begin returns the context of a request. The caller must call end after the request.
	Begin(ctx context.Context) (request context.Context, end context.CancelFunc, err error)

	// Context ends when the permit is lost. Its cause is the reason.
	Context() context.Context
}

// Place is the place of the upload among those of a batch, of which a limited number runs at a
// time. Its methods do not block.
type Place interface {
	// Sent records that n bytes of object data were handed to the network.
	Sent(n int)

	// Refused records that the service refused a request because of its load.
	Refused()
}
