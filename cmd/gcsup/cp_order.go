package main

import (
	"iter"
	"sync"

	"gcsup/upload"
)

// jobOrder puts the outcomes of a batch in the order of its jobs, so that the output of a run does not
// depend on which upload ended first. It keeps outcomes that are early, which are few unless a
// large file is compared. The zero value is an empty order.
type jobOrder struct {
	mu   sync.Mutex
	read []jobKey // the jobs whose outcomes were not passed on, in their order
}

// jobKey identifies a job of a batch.
type jobKey struct{ path, destination string }

// jobOutcome is the outcome of a job.
type jobOutcome struct {
	res *upload.Result
	err error
}

// jobs yields jobs, and notes their order.
func (o *jobOrder) jobs(jobs iter.Seq[upload.Job]) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for job := range jobs {
			o.add(job)
			if !yield(job) {
				return
			}
		}
	}
}

// add notes the next job.
func (o *jobOrder) add(job upload.Job) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.read = append(o.read, jobKey{job.Path, job.Spec.URL()})
}

// outcomes yields outcomes in the order of the jobs.
func (o *jobOrder) outcomes(outcomes iter.Seq2[*upload.Result, error]) iter.Seq2[*upload.Result, error] {
	return func(yield func(*upload.Result, error) bool) {
		early := map[jobKey][]jobOutcome{}
		for res, err := range outcomes {
			k := jobKey{res.Path, res.Spec.URL()}
			early[k] = append(early[k], jobOutcome{res, err})
			for next, ok := o.pop(early); ok; next, ok = o.pop(early) {
				if !yield(next.res, next.err) {
					return
				}
			}
		}
		// After an interruption, jobs have no outcome.
		for _, list := range early {
			for _, next := range list {
				if !yield(next.res, next.err) {
					return
				}
			}
		}
	}
}

// pop removes the outcome of the first job from early and returns it, if it is there.
func (o *jobOrder) pop(early map[jobKey][]jobOutcome) (next jobOutcome, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.read) == 0 || len(early[o.read[0]]) == 0 {
		return jobOutcome{}, false
	}
	k := o.read[0]
	o.read = o.read[1:]
	next = early[k][0]
	if early[k] = early[k][1:]; len(early[k]) == 0 {
		delete(early, k)
	}
	return next, true
}
