package fleet

import (
	"context"
	"errors"
	"slices"
	"time"

	"gcsup/internal/crowd"
)

// cancel cancels the tasks of this worker that were in the queue when c was made.
func (w *Worker) cancel(c cancellation) {
	consumer := w.q.open.Load().consumer.CachedInfo().Name
	w.endTasks(errCanceled, func(d *delivery) bool {
		// If the consumer differs, the sequence number may be from before JetStream was wiped. If the consumer was
		// only replaced, see Redeliver, a task that is still in the queue is delivered again.
		return d.consumer != consumer || d.sequence <= c.Sequence
	})
}

// endTasks ends the active tasks that which selects.
func (w *Worker) endTasks(cause error, which func(*delivery) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.active {
		if which(d) {
			d.end(cause)
		}
	}
}

// unfit returns why this worker is unfit, or nil.
func (w *Worker) unfit() *Unfitness {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fitness.unfit == nil {
		return nil
	}
	u := *w.fitness.unfit
	return &u
}

// rate rates the fitness of this worker by the outcome of a task.
func (w *Worker) rate(task string, t tally) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(t.finished) > 0:
		if w.fitness.success() {
			w.log.Info("this worker takes tasks again: one succeeded")
			w.broadcast()
		}
	case t.verdict == failed && !slices.ContainsFunc(t.failed, func(o outcome) bool { return !ofWorker(o) }):
		w.fitness.failure(task, t.failed[len(t.failed)-1].err)
	}
}

// compareLimit is the number of tasks about which compare asks at a time.
const compareLimit = 64

// compare finds out whether other workers have finished tasks that failed here. Then this worker is the reason.
func (w *Worker) compare(ctx context.Context) {
	var tasks []string
	w.mu.Lock()
	if w.fitness.unfit == nil {
		for task := range w.fitness.failed { // in a random order
			if tasks = append(tasks, task); len(tasks) == compareLimit {
				break
			}
		}
	}
	w.mu.Unlock()
	tasks = slices.DeleteFunc(tasks, func(task string) bool {
		r, _, err := w.q.record(ctx, task)
		return err != nil || r.State != stateDone || r.Files == 0 || r.Split
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fitness.finishedElsewhere(tasks, time.Now()) {
		w.log.Error("this worker takes no tasks except one from time to time: other workers finished tasks that failed here",
			"kind", w.fitness.unfit.Kind, "err", w.fitness.unfit.Reason)
	}
}

// endProbe ends the probe of an unfit worker. tried reports whether it had a task.
func (w *Worker) endProbe(tried bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fitness.endProbe(time.Now(), tried)
	w.broadcast()
}

// broadcast wakes admitted. The caller holds w.mu.
func (w *Worker) broadcast() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// handOverDelay returns how long a task that ended with cause stays in the queue before the next
// worker gets it.
func (w *Worker) handOverDelay(cause error) time.Duration {
	if errors.Is(cause, errGate) {
		return crowd.Epoch / 6
	}
	return 0
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
