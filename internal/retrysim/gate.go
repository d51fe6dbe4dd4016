package retrysim

import (
	"cmp"
	"time"

	"gcsup/internal/breaker"
)

// gate is a backoff.Breaker in virtual time.
type gate struct {
	breaker breaker.Breaker
	tick    time.Time // when a queued event admits clients; zero if there is none
}

// defaultMaximum is the default of backoff.Policy.Maximum.
const defaultMaximum = 32 * time.Second

// enter has c wait until the breaker admits its retry.
func (r *run) enter(c client) {
	c.gate.breaker.Wait(c.operation, cmp.Or(r.policy.Maximum, defaultMaximum), func() {
		r.after(r.scenario.reply, func() { r.request(c) })
	})
	r.admit(c.gate)
}

// admit admits the retries that may be made now, and the others later.
func (r *run) admit(g *gate) {
	next := g.breaker.Admit(r.time())
	if next.IsZero() || next.Equal(g.tick) {
		return
	}
	g.tick = next
	r.at(next.UnixNano(), func() {
		if g.tick.Equal(next) {
			g.tick = time.Time{}
		}
		r.admit(g)
	})
}
