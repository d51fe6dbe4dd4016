package upload

import (
	"sync"
	"sync/atomic"
	"time"

	"gcsup/upload/internal/engine"
	"gcsup/upload/internal/saved"
)

// jobResult collects the Result of a job. The caller may read it while the job continues,
// see [job.do].
type jobResult struct {
	began  time.Time
	tally  engine.Tally
	failed func(error) // nil, or called with the error of the upload before its session is canceled
	label  label
	saved  atomic.Pointer[saved.Journal]

	mu    sync.Mutex // guards known. Only the goroutine of the job writes it, and may read it without mu
	known Result     // without what label and tally have
}

func (r *jobResult) update(change func(*Result)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.known)
}

// snapshot returns the Result of an upload with progress p, as far as it is known.
func (r *jobResult) snapshot(p *progress) Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	res, n := r.known, r.label.get()
	res.ID, res.Path, res.Spec = n.id, n.path, n.spec
	res.Size = p.whole.Size.Load()
	if offsets := p.source.Load(); offsets != nil {
		res.Size = offsets.Size()
	}
	res.BytesSent, res.BytesResent, res.BytesReread = r.tally.Sent.Load(), r.tally.Resent.Load(), r.tally.Reread.Load()
	res.Paced = time.Duration(r.tally.Paced.Load())
	res.Requests, res.Elapsed = int(r.tally.Requests.Load()), time.Since(r.began)
	return res
}
