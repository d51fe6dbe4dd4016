package retrysim

import (
	"time"

	"gcsup/backoff"
)

// machine is a model of a gcsup that uploads small files from an endless list, each in one
// request. It finds the number of requests in flight and paces them as gcsup does.
type machine struct {
	limiter backoff.Limiter
	rate    backoff.Rate
	held    bool     // the rate holds a request
	retries []client // whose wait has ended
}

func newMachine(number, machines int) *machine {
	m := new(machine)
	m.rate.Share(number, machines)
	return m
}

// start makes the requests that may be made now, retries first.
func (r *run) start(m *machine) {
	now := time.Unix(0, r.now)
	for !m.held {
		c := client{count: 1, left: 1, machine: m}
		if len(m.retries) > 0 {
			c, m.retries = m.retries[0], m.retries[1:]
		} else if !m.limiter.Start(now) {
			return
		}
		if wait := m.rate.Reserve(now); wait > 0 {
			m.held = true
			r.after(wait, func() {
				m.held = false
				r.request(c)
				r.start(m)
			})
			return
		}
		r.request(c)
	}
}

func (m *machine) accepted(now int64) {
	m.limiter.Ended(time.Unix(0, now), 1)
	m.rate.Accepted(time.Unix(0, now))
}

func (m *machine) refused(now int64) {
	m.limiter.Refused(time.Unix(0, now))
	m.rate.Refused(time.Unix(0, now))
}
