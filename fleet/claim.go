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

// errClaimLost is the cause of the end of uploads after the worker was suspended for
// so long that another worker may have them.
var errClaimLost = errors.New("this worker was suspended, and another one may have the upload")

// claim is the right of a worker to work on a delivered task. It expires AckWait
// after its last heartbeat. A worker that was suspended made no heartbeats, and its
// claim has expired when it resumes. While NATS cannot be reached, the worker
// continues to record heartbeats. Another worker may then get the task too. Leases
// and preconditions prevent a wrong object.
type claim struct {
	wait time.Duration           // AckWait
	end  context.CancelCauseFunc // ends the task

	answered atomic.Bool // the service answered a request of the task

	mu   sync.Mutex
	beat time.Time // the last heartbeat, with its monotonic time
}

// renew records a heartbeat. If the claim has expired, renew ends the task and
// returns false instead.
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

// valid reports whether a request may begin. If the claim has expired, it ends the task.
func (c *claim) valid(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if elapsed(c.beat, now) < c.wait {
		return true
	}
	c.end(errClaimLost)
	return false
}

// elapsed returns the time from then to now, by the monotonic or the wall clock, whichever is
// longer: the monotonic clock may stop while the machine is suspended.
func elapsed(then, now time.Time) time.Duration {
	return max(now.Sub(then), now.Round(0).Sub(then.Round(0)))
}

type claimKey struct{}

// withClaim returns a context that carries c to the requests of a task, for guard.
func withClaim(ctx context.Context, c *claim) context.Context {
	return context.WithValue(ctx, claimKey{}, c)
}

// guard is a RoundTripper that lets requests of a task begin only while its claim is valid, and
// records whether the service answers.
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

// CloseIdleConnections closes the idle connections of base.
func (g *guard) CloseIdleConnections() {
	(&http.Client{Transport: g.base}).CloseIdleConnections()
}

// troubled reports whether a status means that the service fails or is overloaded.
func troubled(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500
}

// health records whether the service answers the requests of a worker.
type health struct {
	row  atomic.Int64 // failures in a row
	last atomic.Int64 // when the service last answered, in ns since 1970; 0 if never
}

func (h *health) answered() {
	h.row.Store(0)
	h.last.Store(time.Now().UnixNano())
}

// forget resets the failures when no task is active.
func (h *health) forget() { h.row.Store(0) }

// recent reports whether the service answered within the last crowd.Epoch.
func (h *health) recent() bool {
	return time.Since(time.Unix(0, h.last.Load())) < crowd.Epoch
}

func (h *health) failed()       { h.row.Add(1) }
func (h *health) trouble() bool { return h.row.Load() >= crowd.TroubleRow }
