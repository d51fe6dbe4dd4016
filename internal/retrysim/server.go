package retrysim

import "time"

// request is the credit that a server uses to serve one request. In this unit,
// a capacity of c requests per second adds c units per nanosecond, and the
// arithmetic is exact.
const request = int64(time.Second)

// service decides which requests are served.
type service interface {
	// admit returns how many of count requests at the time now are served. now must not
	// decrease.
	admit(now, count int64) int64
	// perSecond returns how many requests are served per second if there is no outage.
	perSecond() int64
}

// server is the service of an outage.
type server struct {
	capacity int64
	down, up int64 // ns; the outage is down <= t < up
	ramp     int64 // ns
	refusal  int64 // units
	queue    int64 // units; maximum credit

	credit int64 // units; credit at the time last
	last   int64 // ns
}

func newServer(s Scenario) *server {
	v := &server{
		capacity: int64(s.Capacity),
		down:     int64(s.start),
		up:       int64(s.start + s.Outage),
		ramp:     int64(s.ramp),
		refusal:  s.refusal * request / 1000,
		queue:    max(int64(s.Capacity)*request/10, request),
	}
	if s.single {
		v.queue = request
	}
	v.credit = v.queue
	return v
}

func (v *server) perSecond() int64 { return v.capacity }

func (v *server) admit(now, count int64) int64 {
	if v.down <= now && now < v.up {
		return 0
	}
	if v.last < v.up && now >= v.up {
		v.credit, v.last = v.queue, v.up // the outage has ended
		if v.ramp > 0 {
			v.credit = 0
		}
	}
	v.credit = min(v.credit+v.earned(v.last, now), v.queue)
	v.last = now
	served := min(count, v.credit/request)
	v.credit = max(v.credit-served*request-min((count-served)*v.refusal, v.credit), 0)
	return served
}

// earned returns the credit of the time from t0 to t1. If that is more than
// queue, the result may be smaller, but is at least queue.
func (v *server) earned(t0, t1 int64) int64 {
	if full := v.up + v.ramp; v.ramp == 0 || t0 >= full || t1 < v.up {
		return v.capacity * min(t1-t0, int64(time.Second))
	} else if t1 > full {
		return v.earned(t0, full) + v.earned(full, t1)
	}
	return v.ramped(t1-v.up) - v.ramped(t0-v.up)
}

// ramped returns the credit of the first t ns after the outage, while capacity
// grows in proportion to the time: the area of a triangle.
func (v *server) ramped(t int64) int64 {
	return int64(float64(v.capacity) * float64(t) * float64(t) / float64(2*v.ramp))
}
