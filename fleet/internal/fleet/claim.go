package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
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

	began    time.Time
	answered atomic.Bool // the service answered a request of the task
	failed   sync.Map    // of requestKind: those that failed, as keys

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

// expire ends the claim: no request begins any more.
func (c *claim) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beat = time.Time{}
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
	k := kindOfRequest(req)
	resp, err := g.base.RoundTrip(req)
	switch {
	case err == nil && !troubled(resp.StatusCode):
		g.health.answered(k)
		if c != nil {
			c.answered.Store(true)
		}
	case req.Context().Err() == nil:
		reason := fmt.Sprint(err)
		if err == nil {
			reason = resp.Status
		}
		g.health.failed(k, bucketOf(req), reason)
		if c != nil {
			c.failed.Store(k, true)
		}
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

// requestKind is a kind of request to a bucket. An outage may concern only some kinds, such as those
// that write: an answer to one kind does not prove that the service answers another one.
type requestKind string

// kindOfRequest returns the kind of a request, by its method, bucket and kind of upload.
func kindOfRequest(req *http.Request) requestKind {
	path, _, _ := strings.Cut(req.URL.Path, "/o/")
	kind := req.Method + " " + path + " " + req.URL.Query().Get("uploadType")
	if strings.HasPrefix(req.Header.Get("Content-Range"), "bytes */") {
		kind += " without data" // a status query
	}
	return requestKind(kind)
}

// bucketOf returns the bucket of a request.
func bucketOf(req *http.Request) string {
	_, rest, _ := strings.Cut(req.URL.Path, "/b/")
	bucket, _, _ := strings.Cut(rest, "/")
	return bucket
}

// health records which kinds of requests of a worker the service answers.
type health struct {
	log *slog.Logger

	mu      sync.Mutex
	times   map[requestKind]time.Time // of the last answer
	outages map[requestKind]*Outage   // kinds whose last requests failed
}

// Outage describes requests of one kind that fail, one after the other, because the service does not answer or is
// overloaded.
type Outage struct {
	Bucket string    `json:"bucket"`
	Reason string    `json:"reason"` // the status or the error of the last one
	Since  time.Time `json:"since"`  // by the clock of the worker

	last   time.Time // when a request failed last
	logged bool
}

// at reports whether there is an outage at a time. If no request has failed for long, none is made any more.
func (o *Outage) at(now time.Time) bool {
	return now.Sub(o.Since) >= outageAfter && now.Sub(o.last) < outageForgotten
}

// outageAfter is the time after which requests that fail are an outage. Shorter ones are common.
const outageAfter = 20 * time.Second

// outageForgotten is longer than the wait before each retry.
const outageForgotten = 2 * time.Minute

func (h *health) answered(k requestKind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.times == nil {
		h.times = map[requestKind]time.Time{}
	}
	h.times[k] = time.Now()
	if o := h.outages[k]; o != nil && o.logged {
		h.log.Warn("the service answers again", "bucket", o.Bucket, "after", time.Since(o.Since).Round(time.Second))
	}
	delete(h.outages, k)
}

func (h *health) failed(k requestKind, bucket, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.outages == nil {
		h.outages = map[requestKind]*Outage{}
	}
	o := h.outages[k]
	if o == nil {
		o = &Outage{Bucket: bucket, Since: time.Now()}
		h.outages[k] = o
	}
	o.Reason, o.last = shortReason(reason), time.Now()
	if lasts := time.Since(o.Since); lasts >= outageAfter && !o.logged {
		o.logged = true
		h.log.Error("the service fails; uploads wait", "bucket", bucket, "err", o.Reason, "since", o.Since.UTC(), "for", lasts.Round(time.Second), "requests", k)
	}
}

// current returns the outages at a time.
func (h *health) current(now time.Time) (all []Outage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.outages {
		if o.at(now) {
			all = append(all, *o)
		}
	}
	slices.SortFunc(all, func(a, b Outage) int { return a.Since.Compare(b.Since) })
	return all
}

// failing returns how long requests to each bucket have failed, of those with an outage.
func (h *health) failing(now time.Time) map[string]time.Duration {
	buckets := map[string]time.Duration{}
	for _, o := range h.current(now) {
		buckets[o.Bucket] = max(buckets[o.Bucket], now.Sub(o.Since))
	}
	return buckets
}

// answeredSince reports whether the service answered a request of a kind since a time.
func (h *health) answeredSince(k requestKind, since time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.times[k]
	return ok && !at.Before(since)
}

// proves reports whether the service answered, during a delivery, a request of the task and a
// request of each kind that failed for the task. Those of other tasks of the worker prove it
// too. The failures of the task then count.
func (h *health) proves(c *claim) bool {
	proven := c.answered.Load()
	c.failed.Range(func(k, _ any) bool {
		proven = proven && h.answeredSince(k.(requestKind), c.began)
		return proven
	})
	return proven
}
