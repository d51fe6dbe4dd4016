package page

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gcsup/internal/cli/runlog"
)

const (
	maxExchanges = 50  // the slowest, the latest and the latest that failed
	maxSums      = 200 // kinds of exchanges
)

// exchangeRecorder records the exchanges that --report shows. It is the slog.Handler that
// receives the library's line for each exchange. Its memory does not grow with the run.
type exchangeRecorder struct {
	mu       sync.Mutex
	start    time.Time
	sums     map[exchangeKind]*exchangeSum
	slow     []exchange
	latest   []exchange
	failed   []exchange // the latest
	requests int
	failures int
}

// exchange is an exchange and when it began, since the start of the run.
type exchange struct {
	runlog.Exchange
	at time.Duration
}

type exchangeKind struct {
	op     string
	status int64 // 0 if there was no reply
}

type exchangeSum struct {
	n             int
	sent          int64
	took, longest time.Duration
}

// keepLatest adds v to the n latest.
func keepLatest[T any](list []T, v T, n int) []T {
	if len(list) == n {
		list = slices.Delete(list, 0, 1)
	}
	return append(list, v)
}

// Enabled accepts the lines of exchanges.
func (e *exchangeRecorder) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs returns e: the library adds no attributes to its logger.
func (e *exchangeRecorder) WithAttrs([]slog.Attr) slog.Handler { return e }

// WithGroup returns e.
func (e *exchangeRecorder) WithGroup(string) slog.Handler { return e }

// Handle records an exchange.
func (e *exchangeRecorder) Handle(_ context.Context, r slog.Record) error {
	if r.Level != slog.LevelDebug {
		return nil
	}
	l := exchange{Exchange: runlog.ReadExchange(r)}
	e.mu.Lock()
	defer e.mu.Unlock()
	l.at = r.Time.Add(-l.Took).Sub(e.start)
	e.requests++
	kind := exchangeKind{l.Op, l.Status}
	sum := e.sums[kind]
	if sum == nil {
		if len(e.sums) == maxSums {
			kind = exchangeKind{op: "other"}
		}
		if sum = e.sums[kind]; sum == nil {
			sum = &exchangeSum{}
			e.sums[kind] = sum
		}
	}
	sum.n++
	sum.sent += l.Sent
	sum.took += l.Took
	sum.longest = max(sum.longest, l.Took)
	e.slow = keepLongest(e.slow, l, maxExchanges, func(l exchange) time.Duration { return l.Took })
	e.latest = keepLatest(e.latest, l, maxExchanges)
	if l.Err != "" || l.Status >= 400 {
		e.failures++
		e.failed = keepLatest(e.failed, l, maxExchanges)
	}
	return nil
}
