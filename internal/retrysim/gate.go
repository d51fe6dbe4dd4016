package retrysim

import (
	"cmp"
	"time"
)

// gate is a model of backoff.Gate for clients that are simulated without
// goroutines. TestGateModel compares it with backoff.Gate, which documents the
// reasons.
type gate struct {
	row      int  // refusals since the last served request
	first    int  // number of the client of the first of these refusals; 0 if there is none
	several  bool // another client was refused too
	failing  int  // clients that were refused and have not been served or left since
	limit    int  // retries that may be under way; 0 if the gate is open
	underWay int
	probes   int   // refused retries since the last served one
	next     int64 // ns; when a retry is admitted at the latest
	tick     int64 // ns; time of the queued event that admits a client at next; 0 if there is none
	waiting  []client
}

// The defaults of backoff.Gate.Threshold and backoff.Policy.Maximum.
const (
	gateThreshold  = 5
	defaultMaximum = 32 * time.Second
)

// refused records that the request of c was refused. pace returns the policy's wait after
// that many failed probes.
func (g *gate) refused(c *client, now int64, pace func(probes int) time.Duration) {
	if c.tries == 1 {
		g.failing++
	}
	g.row++
	if g.first == 0 {
		g.first = c.number
	}
	g.several = g.several || g.first != c.number
	switch {
	case g.limit == 0:
		if g.several && g.row >= gateThreshold {
			g.limit, g.next = 1, now
		}
	case c.retrying:
		if g.limit /= 2; g.limit <= 1 {
			g.limit = 1
			g.next = now + int64(pace(g.probes))
			g.probes++
		}
	}
	g.release(c)
}

// served records that the request of c was served. Only a retry opens the gate.
func (g *gate) served(c *client) {
	g.row, g.first, g.several = 0, 0, false
	if c.tries > 0 {
		g.failing--
		if g.limit > 0 {
			g.probes = 0
			if g.limit++; g.limit > g.failing {
				g.limit = 0
			}
		}
	}
	g.release(c)
}

// left records that c stops after a refusal.
func (g *gate) left(c client) {
	if g.failing--; g.failing == 0 {
		g.row, g.first, g.several, g.probes, g.limit = 0, 0, false, 0, 0
	}
	if g.first == c.number {
		g.first = 0
	}
}

func (g *gate) release(c *client) {
	if c.retrying {
		c.retrying = false
		g.underWay--
	}
}

// admit admits all retries that may be made now.
func (r *run) admit(g *gate) {
	for len(g.waiting) > 0 {
		free := g.limit == 0 || g.limit > 1 && g.underWay < g.limit
		if !free && r.now < g.next {
			if g.tick != g.next {
				g.tick = g.next
				r.at(g.next, func() { g.tick = 0; r.admit(g) })
			}
			return
		}
		c := g.waiting[0]
		g.waiting = g.waiting[1:]
		if g.limit > 0 {
			c.retrying = true
			g.underWay++
			g.next = r.now + int64(cmp.Or(r.policy.Maximum, defaultMaximum))
		}
		r.after(r.scenario.reply, func() { r.request(c) })
	}
}
