// Package joborder puts the outcomes of a batch in the order of its jobs, so that the output of a run does not
// depend on which upload ended first.
package joborder

import (
	"iter"
	"sync"

	"gcsup/upload"
)

// Order is the order of the jobs of one batch. It keeps outcomes that are early, which are few unless a
// large file is compared. The zero value is an empty order.
type Order struct {
	mu   sync.Mutex
	read []key // the jobs whose outcomes were not passed on, in their order
}

// key identifies a job of a batch.
type key struct{ path, destination string }

// outcome is the outcome of a job.
type outcome struct {
	res *upload.Result
	err error
}

// Jobs yields jobs, and notes their order.
func (o *Order) Jobs(jobs iter.Seq[upload.Job]) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for job := range jobs {
			o.Add(job)
			if !yield(job) {
				return
			}
		}
	}
}

// Add notes the next job.
func (o *Order) Add(job upload.Job) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.read = append(o.read, key{job.Path, job.Spec.URL()})
}

// Outcomes yields outcomes in the order of the jobs.
func (o *Order) Outcomes(outcomes iter.Seq2[*upload.Result, error]) iter.Seq2[*upload.Result, error] {
	return func(yield func(*upload.Result, error) bool) {
		early := map[key][]outcome{}
		for res, err := range outcomes {
			k := key{res.Path, res.Spec.URL()}
			early[k] = append(early[k], outcome{res, err})
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
func (o *Order) pop(early map[key][]outcome) (next outcome, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.read) == 0 || len(early[o.read[0]]) == 0 {
		return outcome{}, false
	}
	k := o.read[0]
	o.read = o.read[1:]
	next = early[k][0]
	if early[k] = early[k][1:]; len(early[k]) == 0 {
		delete(early, k)
	}
	return next, true
}
