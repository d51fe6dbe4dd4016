package fleet

import (
	"errors"
	"time"
)

// cancel cancels the tasks of this worker that were in the queue when c was made.
func (w *Worker) cancel(c cancellation) {
	consumer := w.q.open.Load().consumer.CachedInfo().Name
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.active {
		// If the consumer differs, the sequence number may be from before JetStream was wiped. If the consumer was
		// only replaced, see Redeliver, a task that is still in the queue is delivered again.
		if d.consumer != consumer || d.sequence <= c.Sequence {
			d.end(errCanceled)
		}
	}
}

// enter adds a delivery to the active ones. It returns false if this worker has its task already.
func (w *Worker) enter(d *delivery) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.active[d.id] != nil {
		return false
	}
	w.active[d.id] = d
	return true
}

// exit removes a delivery from the active ones.
func (w *Worker) exit(d *delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.active, d.id)
}

// errCrowded is the cause of the end of a task that keeps the worker from tasks of other buckets.
var errCrowded = errors.New("its bucket fails, and other buckets need the worker")

// crowded ends d, and returns true, if tasks of buckets that fail have more than half of the places of this worker.
func (w *Worker) crowded(d *delivery) bool {
	if len(w.opts.Buckets) == 1 {
		return false
	}
	failing := w.health.failing(time.Now())
	lasts := failing[d.task.Settings.Bucket]
	if lasts == 0 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := 0
	for _, other := range w.active {
		if failing[other.task.Settings.Bucket] > 0 && other.ctx.Err() == nil {
			waiting++
		}
	}
	if waiting <= max(1, w.opts.Jobs/2) {
		return false
	}
	d.wait.Store(int64(min(lasts/2, time.Minute))) // so that the tasks behind it begin
	d.end(errCrowded)
	return true
}
