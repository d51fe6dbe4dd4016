package retrysim

import (
	"fmt"
	"time"

	"gcsup/internal/crowd"
)

// fleet is a model of the workers of gcsup-fleet: the clients of a group are the
// uploads of one worker. Like gcsup-fleet, it uses package crowd for its decisions.
type fleet struct {
	workers    []worker
	conditions crowd.Crowd // as last published
	interval   time.Duration
}

// worker is one worker of a fleet.
type worker struct {
	name  string
	row   int     // refused requests since the last served one
	held  bool    // the gate of the fleet does not admit it
	left  int     // uploads that are not finished
	last  int64   // ns; when a request was served last
	tasks []event // uploads that it postponed until it is admitted
}

// newFleet returns a fleet in which each worker has the given number of uploads.
func newFleet(clients, uploads int) *fleet {
	f := &fleet{conditions: crowd.Crowd{}}
	for first := 0; first < clients; first += uploads {
		name := fmt.Sprintf("worker-%d", len(f.workers))
		f.workers = append(f.workers, worker{name: name, left: min(uploads, clients-first)})
		f.conditions[name] = crowd.Sending
	}
	f.interval = crowd.Interval(len(f.workers))
	return f
}

// beginBeats queues the first beat of each worker, at a random time.
func (r *run) beginBeats() {
	for i := range r.fleet.workers {
		r.wheel.push(event{at: r.random.Int64N(int64(r.fleet.interval)), client: uint32(i), beat: true})
	}
}

// beat publishes the condition of a worker and applies those of the others. A worker
// that is admitted again begins its uploads at once.
func (r *run) beat(e event) {
	f, w := r.fleet, &r.fleet.workers[e.client]
	cond := crowd.Sending
	switch {
	case w.left == 0 && e.at-w.last < int64(crowd.Epoch):
		cond = crowd.Ready
	case w.left == 0:
		cond = crowd.Idle
	case w.held:
		cond = crowd.Waiting
	case w.row >= crowd.TroubleRow:
		cond = crowd.Troubled
	}
	f.conditions[w.name] = cond
	w.held = !f.conditions.Admits(w.name, time.Unix(0, e.at))
	if !w.held {
		for _, task := range w.tasks {
			task.at = e.at
			r.wheel.push(task)
		}
		w.tasks = w.tasks[:0]
	}
	if r.done < int64(r.scenario.Clients) {
		e.at += int64(f.interval)
		r.wheel.push(e)
	}
}

// hold postpones e and returns true if the worker is not admitted. It returns false
// if the request may be made.
func (r *run) hold(e event) bool {
	w := &r.fleet.workers[int(e.client)/r.scenario.group]
	if !w.held {
		return false
	}
	if g := r.gateOf(e); g != nil && e.tries > 0 {
		e = g.release(e)
		g.left(e)
		e.tries, e.passed = 0, false
	}
	w.tasks = append(w.tasks, e)
	return true
}

// answered records that the server answered a request of a worker, or refused it.
func (r *run) answered(e event, served bool) {
	w := &r.fleet.workers[int(e.client)/r.scenario.group]
	if !served {
		w.row++
		return
	}
	w.row, w.last = 0, e.at
	if e.left == 1 {
		w.left--
	}
}
