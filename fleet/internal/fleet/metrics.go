package fleet

// WorkerMetrics are the numbers of a worker for a monitoring system. The counters are sums since the worker
// was made.
type WorkerMetrics struct {
	Files            int64 // whose objects this worker made, or found to be right
	Bytes            int64 // of these files
	Sent             int64 // object bytes that were handed to the network
	DeadLetters      int64 // files that became dead letters
	FailedDeliveries int64 // deliveries that failed and count

	ActiveTasks int // tasks that this worker has now
}

// Metrics returns the numbers of this worker.
func (w *Worker) Metrics() WorkerMetrics {
	w.mu.Lock()
	defer w.mu.Unlock()
	return WorkerMetrics{
		Files: w.totals.files.Load(), Bytes: w.totals.bytes.Load(), Sent: w.totals.sent.Load(),
		DeadLetters: w.totals.letters.Load(), FailedDeliveries: w.totals.failures.Load(),
		ActiveTasks: len(w.active),
	}
}
