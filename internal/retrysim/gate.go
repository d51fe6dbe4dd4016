package retrysim

import (
	"cmp"
	"time"
)

// gate is a model of backoff.Gate for clients that are simulated without
// goroutines. TestGateModel compares it with backoff.Gate, which documents the
// reasons.
type gate struct {
	row      int    // refusals since the last served request
	first    uint32 // number of the client of the first of these refusals, from 1; 0 if there is none
	several  bool   // another client was refused too
	failing  int    // clients that were refused and have not been served or left since
	limit    int    // retries that may be under way; 0 if the gate is open
	underWay int
	probes   int   // refused retries since the last served one
	next     int64 // ns; when a retry is admitted at the latest
	tick     int64 // ns; time of the queued event that admits a client at next; 0 if there is none
	waiting  []event
}

// The defaults of backoff.Gate.Threshold and backoff.Policy.Maximum.
const (
	gateThreshold  = 5
	defaultMaximum = 32 * time.Second
)

// gateOf returns the gate of e's client, or nil if it has none.
func (r *run) gateOf(e event) *gate {
	if r.gates == nil {
		return nil
	}
	return &r.gates[int(e.client)/r.scenario.group]
}

// refused records that the request of e was refused. It returns e without its retry
// under way. pace returns the policy's wait after that many failed probes.
func (g *gate) refused(e event, pace func(probes int) time.Duration) event {
	if e.tries == 1 {
		g.failing++
	}
	g.row++
	if g.first == 0 {
		g.first = e.client + 1
	}
	g.several = g.several || g.first != e.client+1
	switch {
	case g.limit == 0:
		if g.several && g.row >= gateThreshold {
			g.limit, g.next = 1, e.at
		}
	case e.retrying:
		if g.limit /= 2; g.limit <= 1 {
			g.limit = 1
			g.next = e.at + int64(pace(g.probes))
			g.probes++
		}
	}
	return g.release(e)
}

// served records that the request of e was served. Only a retry opens the gate.
func (g *gate) served(e event) event {
	g.row, g.first, g.several = 0, 0, false
	if e.tries > 0 {
		g.failing--
		if g.limit > 0 {
			g.probes = 0
			if g.limit++; g.limit > g.failing {
				g.limit = 0
			}
		}
	}
	return g.release(e)
}

// left records that the client of e stops after a refusal.
func (g *gate) left(e event) {
	if g.failing--; g.failing == 0 {
		g.row, g.first, g.several, g.probes, g.limit = 0, 0, false, 0, 0
	}
	if g.first == e.client+1 {
		g.first = 0
	}
}

func (g *gate) release(e event) event {
	if e.retrying {
		e.retrying = false
		g.underWay--
	}
	return e
}

// admit admits all retries that may be made now.
func (r *run) admit(g *gate, now int64) {
	for len(g.waiting) > 0 {
		free := g.limit == 0 || g.limit > 1 && g.underWay < g.limit
		if !free && now < g.next {
			if g.tick != g.next {
				g.tick = g.next
				r.wheel.push(event{at: g.next, client: g.waiting[0].client})
			}
			return
		}
		e := g.waiting[0]
		g.waiting = g.waiting[1:]
		e.at = now + int64(r.scenario.reply)
		e.passed = true
		if g.limit > 0 {
			e.retrying = true
			g.underWay++
			g.next = now + int64(cmp.Or(r.policy.Maximum, defaultMaximum))
		}
		r.wheel.push(e)
	}
}
