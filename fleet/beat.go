package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gcsup/internal/crowd"
	"gcsup/upload"
)

// Prefixes of the keys in the workers bucket. All workers read the conditions, and Status reads
// the details.
const (
	conditionPrefix = "condition."
	detailPrefix    = "detail."
)

// keepBeating calls beat at intervals until ctx is done. last has the settings at the start of the
// worker, if known is set. It returns an error if another worker has taken the name.
func (w *Worker) keepBeating(ctx context.Context, last settings, known bool) error {
	for {
		w.mu.Lock()
		interval := crowd.Interval(len(w.others))
		w.mu.Unlock()
		pause(ctx, interval)
		if ctx.Err() != nil {
			return nil
		}
		s, ok, err := w.beat(ctx)
		if err != nil {
			return err
		}
		if ok {
			if known && s.canceled != last.canceled {
				w.cancel(s.canceled)
			}
			last, known = s, true
		}
	}
}

// beat publishes the condition of this worker, reads those of the others and the
// settings, and adapts this worker to them. It returns the settings. If NATS cannot
// be reached, it returns false, and the worker continues as before. The error wraps [ErrNameInUse].
func (w *Worker) beat(ctx context.Context) (settings, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	var s settings
	others := crowd.Crowd{}
	err := w.q.repeat(ctx, func() (err error) {
		if err := w.publish(ctx); err != nil {
			return err
		}
		if s, err = w.q.settings(ctx); err != nil {
			return err
		}
		return conditions(ctx, w.q.open.Load().workers, others)
	})
	if errors.Is(err, ErrNameInUse) {
		return s, false, err
	}
	if err != nil {
		w.log.Warn("NATS cannot be reached", "err", err)
		return s, false, nil
	}
	w.follow(others, s)
	return s, true, nil
}

// condition returns the condition of this worker. The caller holds w.mu.
func (w *Worker) condition() crowd.Condition {
	switch {
	case w.fitness.unfit != nil:
		return crowd.Unfit
	case w.gated:
		return crowd.Waiting
	case len(w.active) == 0 && w.health.recent():
		return crowd.Ready
	case len(w.active) == 0:
		return crowd.Idle
	case w.health.trouble():
		return crowd.Troubled
	}
	return crowd.Sending
}

// publish writes the keys of this worker in the workers bucket.
func (w *Worker) publish(ctx context.Context) error {
	detail, err := json.Marshal(w.Status())
	if err != nil {
		return err
	}
	w.mu.Lock()
	cond := w.condition()
	w.mu.Unlock()
	kv := w.q.open.Load().workers
	if err := w.publishDetail(ctx, kv, detail); err != nil {
		return err
	}
	_, err = kv.PutString(ctx, conditionPrefix+w.opts.Name, string(cond))
	return err
}

// conditions reads the conditions of all live workers into c.
func conditions(ctx context.Context, workers jetstream.KeyValue, c crowd.Crowd) error {
	return eachOf(ctx, workers, conditionPrefix+"*", func(e jetstream.KeyValueEntry) error {
		c[strings.TrimPrefix(e.Key(), conditionPrefix)] = crowd.Condition(e.Value())
		return nil
	})
}

// follow adapts this worker to the others and to the settings of the fleet.
func (w *Worker) follow(others crowd.Crowd, s settings) {
	w.mu.Lock()
	if len(w.active) == 0 && !w.gated {
		w.health.forget()
	}
	others[w.opts.Name] = w.condition()
	gated := !others.Admits(w.opts.Name, time.Now())
	closes := gated && !w.gated
	if gated != w.gated || s.drain != w.drain {
		w.broadcast()
	}
	w.others, w.gated, w.drain = others, gated, s.drain
	w.mu.Unlock()
	w.limitRate(others.Share(float64(s.rate), w.opts.Name))
	w.requests.Share(others.Sharing(w.opts.Name))
	if closes {
		w.log.Warn("the service fails; this worker waits while others try it")
		w.endTasks(errGate, func(d *delivery) bool { return !d.probe })
	}
}

// alone reports whether no other worker is fit. If NATS does not answer, the conditions at the last
// beat decide.
func (w *Worker) alone(ctx context.Context) bool {
	others := crowd.Crowd{}
	if err := conditions(ctx, w.q.open.Load().workers, others); err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		others = w.others
	}
	for name, cond := range others {
		if name != w.opts.Name && cond != crowd.Unfit {
			return false
		}
	}
	return true
}

// limitRate sets the rate limit to the lower of that of this worker and its share of
// the fleet's, in bytes per second. A share of 0 means no limit.
func (w *Worker) limitRate(share float64) {
	limit := cmp.Or(w.opts.Rate, upload.Unlimited)
	if share > 0 {
		limit = min(limit, max(int64(share), 1)) // 0 would pause the worker
	}
	w.rateLimit.SetLimit(limit)
}

// leave deletes the keys of this worker, so that the others need not wait until they expire. A worker that has not
// published a beat has none: a revision of 0 would delete those of another worker with its name.
func (w *Worker) leave() {
	if w.revision == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	kv := w.q.open.Load().workers
	if kv.Purge(ctx, detailPrefix+w.opts.Name, jetstream.LastRevision(w.revision)) == nil {
		_ = kv.Purge(ctx, conditionPrefix+w.opts.Name)
	}
}
