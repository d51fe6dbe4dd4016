package retrysim

import (
	"cmp"
	"time"

	"gcsup/internal/breaker"
)

// virtualBreaker is a backoff.Breaker in virtual time.
type virtualBreaker struct {
	breaker.Breaker
	tick time.Time // when a queued event admits clients; zero if there is none
}

// defaultMaximum is the default of backoff.Policy.Maximum.
const defaultMaximum = 32 * time.Second

// enter has c wait until the breaker admits its retry.
func (r *run) enter(c client) {
	c.breaker.Wait(c.operation, cmp.Or(r.policy.Maximum, defaultMaximum), func() {
		r.after(r.scenario.reply, func() { r.request(c) })
	})
	r.admit(c.breaker)
}

// admit admits the retries that may be made now, and the others later.
func (r *run) admit(b *virtualBreaker) {
	next := b.Admit(r.time())
	if next.IsZero() || next.Equal(b.tick) {
		return
	}
	b.tick = next
	r.at(next.UnixNano(), func() {
		if b.tick.Equal(next) {
			b.tick = time.Time{}
		}
		r.admit(b)
	})
}
