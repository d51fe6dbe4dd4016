package retrysim

import "gcsup/backoff"

// machine is a model of a gcsup that uploads small files from an endless list, each in one
// request. It finds the number of requests in flight and paces them as gcsup does.
type machine struct {
	run     *run
	limiter backoff.Limiter
	rate    backoff.Rate
	held    bool     // the rate holds a request
	retries []client // whose wait has ended
}

func newMachine(r *run, number int) pacer {
	m := &machine{run: r}
	m.rate.Share(number, r.scenario.Clients)
	return m
}

// start makes the requests that may be made now, retries first.
func (m *machine) start() {
	now := m.run.time()
	for !m.held {
		c := client{count: 1, left: 1, pacer: m}
		if len(m.retries) > 0 {
			c, m.retries = m.retries[0], m.retries[1:]
		} else if !m.limiter.Start(now) {
			return
		}
		if wait := m.rate.Reserve(now); wait > 0 {
			m.held = true
			m.run.after(wait, func() {
				m.held = false
				m.run.request(c)
				m.start()
			})
			return
		}
		m.run.request(c)
	}
}

func (m *machine) retry(c client) {
	m.retries = append(m.retries, c)
	m.start()
}

func (m *machine) answered(served bool) {
	now := m.run.time()
	if !served {
		m.limiter.Refused(now)
		m.rate.Refused(now)
		return
	}
	m.limiter.Ended(now, 1)
	m.rate.Accepted(now)
	m.start()
}
