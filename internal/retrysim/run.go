package retrysim

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"gcsup/backoff"
	"gcsup/internal/breaker"
)

// A run ends when every client has been served or has stopped. With some policies
// this never happens, and these limits end the run.
const (
	maxTime   = 24 * time.Hour
	maxIdle   = time.Hour // longest time without a served request while the server is up
	maxEvents = 200_000_000
)

// What the clients of a group share, as a suffix of the name of the policy.
const (
	nothing       = ""
	sharedBreaker = "+breaker"
)

// Run simulates the scenario once for each of the policies, and returns the
// results in the same order. policies are names for [backoff.Named].
func Run(ctx context.Context, s Scenario, policies []string, seed uint64) ([]Result, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	if len(policies) == 0 {
		return nil, errors.New("simulation: no policy")
	}
	shares := []string{nothing}
	if s.group > 0 {
		shares = append(shares, sharedBreaker)
	}
	var runs []*run
	for _, policy := range policies {
		for _, shared := range shares {
			r, err := newRun(s, policy, shared, seed)
			if err != nil {
				return nil, err
			}
			runs = append(runs, r)
		}
	}

	results := make([]Result, len(runs))
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0)) // also bounds the memory
	for i, r := range runs {
		all.Go(func() (err error) {
			results[i], err = r.play(ctx)
			return err
		})
	}
	return results, all.Wait()
}

// run is the simulation of one policy.
type run struct {
	scenario Scenario
	shared   string
	policy   backoff.Policy
	retries  int // retries in a row before a client stops; 0 if it never stops
	limit    int // of events, maxEvents
	random   *rand.Rand
	service  service

	queue  queue
	now    int64 // ns
	last   int64 // ns; when the last request was served
	result Result
	done   []time.Duration // when each client had all parts served, in this order
}

// client is one client, or several that are refused at the same times.
type client struct {
	count     int64
	refused   int                // refused requests since the last served one
	left      int                // parts that are not served yet
	breaker   *virtualBreaker    // nil without circuit breakers
	operation *breaker.Operation // at the breaker
	pacer     pacer              // nil if the client makes its requests at once
}

// pacer decides when a client makes requests, of which each is a client for the run.
type pacer interface {
	start()
	retry(c client) // the wait of c has ended
	answered(served bool)
}

func newRun(s Scenario, name, shared string, seed uint64) (*run, error) {
	policy, err := backoff.Named(name)
	if err != nil {
		return nil, err
	}
	r := &run{
		scenario: s,
		shared:   shared,
		policy:   policy,
		limit:    maxEvents,
		random:   rand.New(rand.NewPCG(seed, 0)),
		service:  newServer(s),
		result:   Result{Policy: name + shared},
	}
	if name == "bidmanager" {
		r.retries = backoff.Retries(0)
	}
	if s.service != nil {
		r.service = s.service(r.random)
	}
	return r, nil
}

func (r *run) play(ctx context.Context) (Result, error) {
	defer func() { r.queue = queue{} }() // the memory of a run that is cut off
	r.begin()
	up := int64(r.scenario.start + r.scenario.Outage)
	for events := 0; ; events++ {
		if events == r.limit {
			r.result.CutOff = true
			break
		}
		if events%(1<<16) == 0 && ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		e, ok := r.queue.pop()
		if !ok || e.at > r.scenario.end() || e.at > max(r.last, up)+int64(maxIdle) {
			break
		}
		r.now = e.at
		e.do()
	}
	r.finish()
	return r.result, nil
}

// at and after queue an event.
func (r *run) at(at int64, do func())              { r.queue.push(event{at, do}) }
func (r *run) after(wait time.Duration, do func()) { r.at(r.now+int64(wait), do) }

func (r *run) time() time.Time { return time.Unix(0, r.now) }

// begin queues the first requests.
func (r *run) begin() {
	s := r.scenario
	if s.spread == 0 && r.shared == nothing {
		r.at(0, func() { r.try(client{count: int64(s.Clients), left: s.parts}) })
		return
	}
	var shared *virtualBreaker
	for i := range s.Clients {
		c := client{count: 1, left: s.parts}
		if r.shared != nothing {
			if i%s.group == 0 {
				shared = new(virtualBreaker)
			}
			c.breaker, c.operation = shared, new(breaker.Operation)
		}
		first := int64(0)
		if s.spread > 0 {
			first = r.random.Int64N(int64(s.spread))
		}
		if s.pacer != nil {
			r.at(first, s.pacer(r, i).start)
		} else {
			r.at(first, func() { r.try(c) })
		}
	}
}

// try makes the request of c, or has it wait for its circuit breaker or pacer.
func (r *run) try(c client) {
	switch {
	case c.pacer != nil:
		c.pacer.retry(c)
	case c.breaker != nil && c.refused > 0 && c.breaker.Open():
		r.enter(c)
	default:
		r.request(c)
	}
}

func (r *run) request(c client) {
	served := r.service.admit(r.now, c.count)
	r.count(c.count, served)
	if r.scenario.service != nil {
		r.after(r.scenario.reply, func() { r.answer(c, served) })
	} else {
		r.answer(c, served)
	}
}

// count adds requests of this moment to the load.
func (r *run) count(requests, served int64) {
	second := r.now / int64(time.Second)
	for int64(len(r.result.Load)) <= second {
		r.result.Load = append(r.result.Load, Second{Capacity: r.service.perSecond()})
	}
	r.result.Load[second].Requests += requests
	r.result.Load[second].Served += served
}

// answer tells the clients of c that so many of their requests were served.
func (r *run) answer(c client, served int64) {
	if served > 0 {
		r.served(c, served)
	}
	if c.count > served {
		r.refused(c, c.count-served)
	}
	if c.breaker != nil {
		r.admit(c.breaker)
	}
}

// served records that the requests of count of the clients of c were served. They make their next requests.
func (r *run) served(c client, count int64) {
	r.last = r.now
	if c.breaker != nil {
		c.breaker.Succeeded(c.operation)
	}
	c.count, c.refused = count, 0
	c.left--
	if c.left > 0 {
		r.after(r.scenario.pause, func() { r.try(c) })
		return
	}
	for range count {
		r.done = append(r.done, time.Duration(r.now))
	}
	if c.pacer != nil {
		c.pacer.answered(true)
	}
}

// refused queues the next retry of count of the clients of c, unless they stop.
func (r *run) refused(c client, count int64) {
	c.count = count
	c.refused++
	stops := r.retries > 0 && c.refused > r.retries
	if c.pacer != nil {
		c.pacer.answered(false)
	}
	switch {
	case c.breaker != nil:
		random := r.random.Float64() // for the wait and the breaker, as in backoff.Waiter
		c.breaker.Failed(c.operation, r.time(), 0, func(probes int) time.Duration { return r.policy.Delay(probes, random) })
		if stops {
			c.breaker.Leave(c.operation, r.time())
		} else {
			r.wait(c, random)
		}
	case stops:
	case r.policy.Jitter == backoff.NoJitter:
		r.wait(c, 0)
	default:
		c.count = 1 // each client has its own random wait
		for range count {
			r.wait(c, r.random.Float64())
		}
	}
}

// wait queues the next try of c for the end of its wait.
func (r *run) wait(c client, random float64) {
	wait := r.policy.Delay(c.refused-1, random)
	r.result.MaxWait = max(r.result.MaxWait, Time(wait))
	r.after(wait, func() { r.try(c) })
}

// finish computes the result.
func (r *run) finish() {
	down, up := r.scenario.start, r.scenario.start+r.scenario.Outage
	for i, load := range r.result.Load {
		r.result.Requests += load.Requests
		r.result.Wasted += load.Requests - load.Served
		if second := time.Duration(i) * time.Second; second+time.Second <= down || second >= up {
			r.result.Peak = max(r.result.Peak, load.Requests)
		}
	}
	r.result.P50, r.result.P99, r.result.All = r.when(50), r.when(99), r.when(100)
	r.result.Failed = max(r.scenario.Clients-len(r.done), 0)
}

// when returns when that part of the clients had been served.
func (r *run) when(percent int) Time {
	n := (r.scenario.Clients*percent + 99) / 100
	if n > len(r.done) {
		return -1
	}
	return Time(r.done[n-1])
}
