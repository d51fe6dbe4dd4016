package fleet

import (
	"errors"
	"time"

	"gcsup/internal/crowd"
)

// cancel cancels the tasks of this worker that were in the queue when c was made.
func (w *Worker) cancel(c cancellation) {
	consumer := w.q.open.Load().consumer.CachedInfo().Name
	w.endTasks(errCanceled, func(d *delivery) bool {
		// If the consumer differs, the sequence number is from before JetStream was wiped.
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
