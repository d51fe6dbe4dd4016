package upload

import (
	"sync"
	"time"
)

// jobResult collects the Result of a job. The caller may read it while the job continues,
// see [job.do].
type jobResult struct {
	began  time.Time
	tally  tally
	failed func(error) // nil, or called with the error of the upload before its session is cancelled

	mu      sync.Mutex // guards what follows. Only the goroutine of the job writes it, and may read it without mu
	known   Result
	journal *journal // nil if the upload is not saved
}

// update changes the Result.
func (r *jobResult) update(change func(*Result)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.known)
}

// keptIn notes the journal of an upload that is saved.
func (r *jobResult) keptIn(j *journal) {
	r.mu.Lock()
	r.journal = j
	r.mu.Unlock()
}

// saved reports whether the store has the upload.
func (r *jobResult) saved() bool {
	r.mu.Lock()
	j := r.journal
	r.mu.Unlock()
	return j.saved()
}

// snapshot returns the Result as far as it is known. at is the position of the upload.
func (r *jobResult) snapshot(at *position) Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	res := r.known
	res.Size = at.size.Load()
	if offsets := at.source.Load(); offsets != nil {
		res.Size = offsets.Size()
	}
	res.BytesSent, res.BytesResent, res.BytesReread = r.tally.sent.Load(), r.tally.resent.Load(), r.tally.reread.Load()
	res.Requests, res.Elapsed = int(r.tally.requests.Load()), time.Since(r.began)
	return res
}
