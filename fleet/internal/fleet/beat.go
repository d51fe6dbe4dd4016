package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
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
		interval := crowd.Interval(len(w.seen))
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
	var found map[string]sighting
	err := w.q.repeat(ctx, func() (err error) {
		if err := w.publish(ctx); err != nil {
			return err
		}
		if s, err = w.q.settings(ctx); err != nil {
			return err
		}
		found, err = conditions(ctx, w.q.open.Load().workers)
		return err
	})
	if errors.Is(err, ErrNameInUse) {
		return s, false, err
	}
	if err != nil {
		w.log.Warn("NATS cannot be reached", "err", err)
		return s, false, nil
	}
	w.follow(found, s)
	w.compare(ctx)
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

// sighting is the last beat of a worker that this one has read.
type sighting struct {
	condition crowd.Condition
	at        time.Time // by the clock of this worker
}

// conditions reads the last beats of all live workers.
func conditions(ctx context.Context, workers jetstream.KeyValue) (map[string]sighting, error) {
	found := map[string]sighting{}
	var newest time.Time
	err := eachOf(ctx, workers, conditionPrefix+"*", func(e jetstream.KeyValueEntry) error {
		found[strings.TrimPrefix(e.Key(), conditionPrefix)] = sighting{crowd.Condition(e.Value()), e.Created()}
		if e.Created().After(newest) {
			newest = e.Created()
		}
		return nil
	})
	now := time.Now()
	for name, s := range found {
		found[name] = sighting{s.condition, now.Add(s.at.Sub(newest))}
	}
	return found, err
}

// follow adapts this worker to the others and to the settings of the fleet.
func (w *Worker) follow(found map[string]sighting, s settings) {
	others := crowd.Crowd{}
	for name, s := range found {
		others[name] = s.condition
	}
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
	w.gated, w.drain = gated, s.drain
	w.see(found)
	w.mu.Unlock()
	w.limitRate(others.Share(float64(s.rate), w.opts.Name))
	w.requests.Share(others.Sharing(w.opts.Name))
	if closes {
		w.log.Warn("the service fails; this worker waits while others try it")
		w.endTasks(errGate, func(d *delivery) bool { return !d.probe })
	}
}

// see adds the beats that were found to those that were seen. The caller holds w.mu.
func (w *Worker) see(found map[string]sighting) {
	maps.Copy(w.seen, found)
	maps.DeleteFunc(w.seen, func(_ string, s sighting) bool { return time.Since(s.at) > workerTTL })
}

// healthyWorkers returns the names of this worker and of the others that are not unhealthy. A worker counts for
// workerTTL after its last beat, even if that is lost: a NATS server that restarts has no beats until the next ones.
func (w *Worker) healthyWorkers(ctx context.Context) (names []string) {
	found, _ := conditions(ctx, w.q.open.Load().workers) // without an answer, those seen before decide
	w.mu.Lock()
	defer w.mu.Unlock()
	w.see(found)
	names = []string{w.opts.Name}
	for name, s := range w.seen {
		if name != w.opts.Name && s.condition != crowd.Unfit {
			names = append(names, name)
		}
	}
	return names
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
