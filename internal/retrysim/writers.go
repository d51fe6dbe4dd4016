package retrysim

import (
	"context"
	"math/rand/v2"
	"time"

	"gcsup/backoff"
)

// Writers are machines that upload small files to one bucket, each file in one request.
type Writers struct {
	Name       string
	Machines   int
	Jobs       int           // requests in flight of each machine; 0 finds the number with backoff.Limiter, and paces with backoff.Rate
	Sequential bool          // names grow, like timestamps; otherwise they are random
	Latency    time.Duration // of each reply
	Length     time.Duration // of the simulation
}

// A WritersResult is the result of a simulation of Writers.
type WritersResult struct {
	Writers
	Load     []Second // in each second
	Files    int64    // accepted
	Refused  int64    // requests that got 429
	Capacity []int64  // of the bucket, writes per second, in each second
}

// RefusedAfter returns the share of the requests since a time that were refused.
func (r WritersResult) RefusedAfter(d time.Duration) float64 {
	var requests, served int64
	for _, s := range r.Load[min(int(d/time.Second), len(r.Load)):] {
		requests += s.Requests
		served += s.Served
	}
	return float64(requests-served) / float64(max(requests, 1))
}

// RunWriters simulates writers. They have more files than they can upload. A request that gets
// 429 is repeated after the wait of the zero backoff.Policy.
func RunWriters(ctx context.Context, w Writers, seed uint64) (WritersResult, error) {
	s := &writing{
		result: WritersResult{Writers: w}, bucket: newBucket(), wheel: new(wheel),
		random: rand.New(rand.NewPCG(seed, 0)),
	}
	for i := range w.Machines {
		m := &writer{jobs: w.Jobs}
		if w.Jobs == 0 {
			m.limiter, m.rate = new(backoff.Limiter), new(backoff.Rate)
			m.rate.Share(i, w.Machines)
		}
		s.writers = append(s.writers, m)
		s.wheel.push(event{at: s.random.Int64N(int64(time.Second)), client: uint32(i)})
	}
	for events := 0; ; events++ {
		if events%(1<<16) == 0 && ctx.Err() != nil {
			return s.result, context.Cause(ctx)
		}
		e, ok := s.wheel.pop()
		if !ok || e.at >= int64(w.Length) {
			return s.result, nil
		}
		s.event(e)
	}
}

// writing is a simulation of Writers. An event is the reply to a request (passed, served in
// count), the end of the wait before a retry (retrying), or else the time of a request that the
// rate held.
type writing struct {
	result  WritersResult
	bucket  *bucket
	wheel   *wheel
	random  *rand.Rand
	writers []*writer
}

// writer is one machine.
type writer struct {
	jobs     int              // fixed number of files at a time; 0 if there is a limiter
	inFlight int              // files, if there is no limiter
	limiter  *backoff.Limiter // nil for a fixed number
	rate     *backoff.Rate    // nil for a fixed number
	held     bool             // a request is held until due
	due      int64            // ns
	next     event            // the request that is held
	retries  []event          // whose wait has ended
}

func (s *writing) event(e event) {
	m, now := s.writers[e.client], time.Unix(0, e.at)
	switch {
	case e.passed && e.count > 0:
		s.result.Files++
		m.inFlight--
		if m.limiter != nil {
			m.limiter.Ended(now, 1)
			m.rate.Accepted(now)
		}
	case e.passed:
		s.result.Refused++
		if m.limiter != nil {
			m.limiter.Refused(now)
			m.rate.Refused(now)
		}
		e.passed, e.retrying = false, true
		e.at += int64(backoff.Policy{}.Delay(int(e.tries)-1, s.random.Float64()))
		s.wheel.push(e)
		return
	case e.retrying:
		e.retrying = false
		m.retries = append(m.retries, e)
	case m.held:
		if e.at < m.due {
			e.at = min(m.due, e.at+int64(time.Minute)) // a turn of the wheel is hardly longer
			s.wheel.push(e)
			return
		}
		m.held = false
		m.next.at = e.at
		s.send(m.next)
	}
	s.start(m, event{at: e.at, client: e.client})
}

// start sends the requests of m that may be sent now.
func (s *writing) start(m *writer, e event) {
	for !m.held {
		next := e
		switch {
		case len(m.retries) > 0:
			next.tries = m.retries[0].tries
			m.retries = m.retries[1:]
		case m.limiter != nil && !m.limiter.Start(time.Unix(0, e.at)), m.limiter == nil && m.inFlight >= m.jobs:
			return
		default:
			m.inFlight++
		}
		if m.rate != nil {
			if wait := m.rate.Reserve(time.Unix(0, e.at)); wait > 0 {
				m.held, m.due, m.next = true, e.at+int64(wait), next
				e.at += int64(min(wait, time.Minute))
				s.wheel.push(e)
				return
			}
		}
		s.send(next)
	}
}

// send makes the request of e, and queues its reply.
func (s *writing) send(e event) {
	key := s.random.Float64()
	if s.result.Sequential {
		key = float64(e.at) / float64(24*time.Hour)
	}
	accepted := s.bucket.admit(e.at, key)
	second := int(e.at / int64(time.Second))
	for len(s.result.Load) <= second {
		s.result.Load = append(s.result.Load, Second{})
		s.result.Capacity = append(s.result.Capacity, int64(len(s.bucket.ranges))*rangeCapacity)
	}
	s.result.Load[second].Requests++
	e.count = 0
	if accepted {
		s.result.Load[second].Served++
		e.count = 1
	}
	e.tries++
	e.passed = true
	e.at += int64(s.result.Latency)
	s.wheel.push(e)
}
