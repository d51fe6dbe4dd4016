package retrysim

import (
	"fmt"
	"time"

	"gcsup/internal/crowd"
)

// fleet is a model of the workers of gcsup-fleet: the clients of a group are the
// uploads of one worker. Like gcsup-fleet, it uses package crowd for its decisions.
type fleet struct {
	workers    []*worker
	conditions crowd.Crowd // as last published
	interval   time.Duration
}

// worker is one worker of a fleet.
type worker struct {
	name  string
	row   int      // refused requests since the last served one
	held  bool     // the gate of the fleet does not admit it
	left  int      // uploads that are not finished
	last  int64    // ns; when a request was served last
	tasks []client // uploads that it postponed until it is admitted
}

func newFleet(s Scenario) *fleet {
	f := &fleet{conditions: crowd.Crowd{}}
	for first := 0; first < s.Clients; first += s.group {
		w := &worker{name: fmt.Sprintf("worker-%d", len(f.workers)), left: min(s.group, s.Clients-first)}
		f.workers = append(f.workers, w)
		f.conditions[w.name] = crowd.Sending
	}
	f.interval = crowd.Interval(len(f.workers))
	return f
}

// beat publishes the condition of a worker and applies those of the others. A worker
// that is admitted again begins its uploads at once.
func (r *run) beat(w *worker) {
	r.fleet.conditions[w.name] = w.condition(r.now)
	w.held = !r.fleet.conditions.Admits(w.name, time.Unix(0, r.now))
	if !w.held {
		for _, c := range w.tasks {
			r.after(0, func() { r.try(c) })
		}
		w.tasks = nil
	}
	if len(r.done) < r.scenario.Clients {
		r.after(r.fleet.interval, func() { r.beat(w) })
	}
}

func (w *worker) condition(now int64) crowd.Condition {
	switch {
	case w.left == 0 && now-w.last < int64(crowd.Epoch):
		return crowd.Ready
	case w.left == 0:
		return crowd.Idle
	case w.held:
		return crowd.Waiting
	case w.row >= crowd.TroubleRow:
		return crowd.Troubled
	}
	return crowd.Sending
}

// postpone keeps an upload until the worker is admitted. It leaves the gate of the worker.
func (w *worker) postpone(c client, now time.Time) {
	if c.tries > 0 {
		c.gate.breaker.Leave(c.operation, now)
		c.tries = 0
	}
	w.tasks = append(w.tasks, c)
}
