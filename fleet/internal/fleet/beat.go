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

	"gcsup/upload"
)

// Prefixes of the keys in the workers bucket. All workers read the conditions, and Status reads
// the details.
const (
	conditionPrefix = "condition."
	detailPrefix    = "detail."
)

// Conditions of a worker, which it publishes to the others.
const (
	idle      = "idle"      // it has no task
	sending   = "sending"   // it has tasks
	unhealthy = "unhealthy" // it can take no task, because of reads that do not return
)

// maxBeatInterval is the longest time between two beats of a worker.
const maxBeatInterval = 15 * time.Second

// beatInterval returns the time between two beats of a worker, from 2 s to maxBeatInterval. At each beat, a worker
// publishes its condition and reads those of the others, so that the cost of a beat grows with their number.
func beatInterval(workers int) time.Duration {
	return min(max(time.Duration(workers)*20*time.Millisecond, 2*time.Second), maxBeatInterval)
}

// keepBeating calls beat at intervals until ctx is done. last has the settings at the start of the
// worker, if known is set.
func (w *Worker) keepBeating(ctx context.Context, last settings, known bool) {
	for {
		w.mu.Lock()
		interval := beatInterval(len(w.seen))
		w.mu.Unlock()
		pause(ctx, interval)
		if ctx.Err() != nil {
			return
		}
		if s, ok := w.beat(ctx); ok {
			if known && s.Canceled != last.Canceled {
				w.cancel(s.Canceled)
			}
			last, known = s, true
		}
	}
}

// beat publishes the condition of this worker, reads those of the others and the
// settings, and adapts this worker to them. It returns the settings. If NATS cannot
// be reached, it returns false, and the worker continues as before.
func (w *Worker) beat(ctx context.Context) (settings, bool) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	var s settings
	var found map[string]sighting
	err := w.q.repeat(ctx, func() (err error) {
		if err := w.publish(ctx); err != nil {
			return err
		}
		if s, _, err = w.q.settings(ctx); err != nil && !errors.Is(err, ErrSignature) {
			return err
		}
		s = w.newest(s, err)
		if err := w.measure(ctx); err != nil {
			return err
		}
		found, err = conditions(ctx, w.q.open.Load().workers)
		return err
	})
	if err != nil {
		w.log.Warn("NATS cannot be reached", "err", err)
		return s, false
	}
	w.follow(found, s)
	return s, true
}

// measure reads the length of the queue, and the number of dead letters.
func (w *Worker) measure(ctx context.Context) error {
	p := w.q.open.Load()
	info, err := p.stream.Info(ctx)
	if err != nil {
		return err
	}
	status, err := p.failed.Status(ctx)
	if err != nil {
		return err
	}
	w.queued.Store(info.State.Msgs)
	w.letters.Store(status.Values())
	return nil
}

// newest returns the newest settings that this worker has seen: s, unless err is not nil, or s is older.
func (w *Worker) newest(s settings, err error) settings {
	if err == nil && s.Number < w.settings.Number {
		err = errors.New("settings: they are older than those before")
	}
	if err != nil && !w.refused {
		w.log.Warn("settings are refused, and the last ones stay", "err", err)
	}
	if w.refused = err != nil; !w.refused {
		w.settings = s
	}
	return w.settings
}

// stuck reports whether this worker can take no task, because of reads that do not return.
func (w *Worker) stuck() bool { return int(w.hung.Load()) >= w.opts.Jobs }

// condition returns the condition of this worker. The caller holds w.mu.
func (w *Worker) condition() string {
	switch {
	case len(w.active) == 0:
		return idle
	case w.stuck():
		return unhealthy
	}
	return sending
}

// publish writes the keys of this worker in the workers bucket.
func (w *Worker) publish(ctx context.Context) error {
	s := w.Status()
	detail, err := json.Marshal(s)
	if err != nil {
		return err
	}
	kv := w.q.open.Load().workers
	if _, err := kv.Put(ctx, detailPrefix+w.opts.Name, detail); err != nil {
		return err
	}
	_, err = kv.PutString(ctx, conditionPrefix+w.opts.Name, s.Condition)
	return err
}

// sighting is the last beat of a worker that this one has read.
type sighting struct {
	condition string
	at        time.Time // by the clock of this worker
}

// conditions reads the last beats of all live workers.
func conditions(ctx context.Context, workers jetstream.KeyValue) (map[string]sighting, error) {
	found := map[string]sighting{}
	var newest time.Time
	err := eachOf(ctx, workers, conditionPrefix+"*", func(e jetstream.KeyValueEntry) error {
		found[strings.TrimPrefix(e.Key(), conditionPrefix)] = sighting{string(e.Value()), e.Created()}
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
	w.mu.Lock()
	found[w.opts.Name] = sighting{w.condition(), time.Now()}
	if s.Drain != w.drain {
		w.drain = s.Drain
		close(w.changed)
		w.changed = make(chan struct{})
	}
	w.see(found)
	w.mu.Unlock()
	number, workers := sharing(found, w.opts.Name)
	w.limitRate(float64(s.Rate) / float64(workers))
	w.requests.Share(number, workers)
}

// sharing returns the number of workers with which the worker with a name shares a rate equally, itself
// included, and its number among them in the order of their names, from 0. These are the workers that
// have tasks. A worker without a task shares with all workers, because many may
// begin before they receive each other's conditions.
func sharing(all map[string]sighting, name string) (number, workers int) {
	for other, s := range all {
		if other == name || s.condition == sending || all[name].condition == idle {
			workers++
			if other < name {
				number++
			}
		}
	}
	return number, max(workers, 1)
}

// see adds the beats that were found to those that were seen. The caller holds w.mu.
func (w *Worker) see(found map[string]sighting) {
	maps.Copy(w.seen, found)
	maps.DeleteFunc(w.seen, func(_ string, s sighting) bool { return time.Since(s.at) > workerTTL })
}

// liveWorkers returns the names of this worker and of the others that take tasks. A worker counts for workerTTL after its last beat,
// even if that is lost: a NATS server that restarts has no beats until the next ones.
func (w *Worker) liveWorkers(ctx context.Context) (names []string) {
	found, _ := conditions(ctx, w.q.open.Load().workers) // without an answer, those seen before decide
	w.mu.Lock()
	defer w.mu.Unlock()
	w.see(found)
	names = []string{w.opts.Name}
	for name, s := range w.seen {
		if name != w.opts.Name && s.condition != unhealthy {
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

// leave deletes the keys of this worker, so that the others need not wait until they expire.
func (w *Worker) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveFor)
	defer cancel()
	kv := w.q.open.Load().workers
	_ = kv.Purge(ctx, detailPrefix+w.opts.Name)
	_ = kv.Purge(ctx, conditionPrefix+w.opts.Name)
}
