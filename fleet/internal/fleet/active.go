package fleet

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
