package fleet

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"gcsup/internal/crowd"
)

// errClaimLost is the cause of uploads that end because their worker was suspended for so
// long that another one has them.
var errClaimLost = errors.New("this worker was suspended, and another one has the upload")

// claim is the right of a worker to work on a delivered task. It lasts AckWait since its
// last heartbeat. Heartbeats continue while NATS is not reached: leases and preconditions
// keep the objects right if another worker gets the task then. A worker that was
// suspended made no heartbeat, and its claim has run out when it is back.
type claim struct {
	wait time.Duration
	end  context.CancelCauseFunc // of the task

	answered atomic.Bool // the service answered a request

	mu   sync.Mutex
	beat time.Time // the last heartbeat, with its monotonic time
}

// renew records a heartbeat. It returns false if the claim has run out: a heartbeat that
// comes too late does not bring it back.
func (c *claim) renew(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if elapsed(c.beat, now) >= c.wait {
		c.end(errClaimLost)
		return false
	}
	c.beat = now
	return true
}

// valid reports whether a request may begin. If the claim has run out, it ends the task.
func (c *claim) valid(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if elapsed(c.beat, now) < c.wait {
		return true
	}
	c.end(errClaimLost)
	return false
}

// elapsed returns the time from then to now by the clock that shows more of it: a machine
// that is suspended stops the monotonic one.
func elapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

type claimKey struct{}

// withClaim returns a context for the requests of a task.
func withClaim(ctx context.Context, c *claim) context.Context {
	return context.WithValue(ctx, claimKey{}, c)
}

// guard lets requests of a task begin only while its claim is valid, and watches whether
// the service answers.
type guard struct {
	base   http.RoundTripper
	health *health
}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	c, _ := req.Context().Value(claimKey{}).(*claim)
	if c != nil && !c.valid(time.Now()) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, errClaimLost
	}
	resp, err := g.base.RoundTrip(req)
	switch {
	case err == nil && !troubled(resp.StatusCode):
		g.health.answered()
		if c != nil {
			c.answered.Store(true)
		}
	case req.Context().Err() == nil:
		g.health.failed()
	}
	return resp, err
}

// troubled reports whether a status means that the service has trouble.
func troubled(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500
}

// health is what the requests of a worker show of the service.
type health struct {
	row  atomic.Int64 // failures since the last answer
	last atomic.Int64 // ns since 1970; when the service answered last
}

func (h *health) answered() {
	h.row.Store(0)
	h.last.Store(time.Now().UnixNano())
}

// forget forgets the failures, which say nothing of the next task.
func (h *health) forget() { h.row.Store(0) }

// recent reports whether the service answered within an epoch of the gate.
func (h *health) recent() bool {
	return time.Since(time.Unix(0, h.last.Load())) < crowd.Epoch
}

func (h *health) failed()       { h.row.Add(1) }
func (h *health) trouble() bool { return h.row.Load() >= crowd.TroubleRow }
