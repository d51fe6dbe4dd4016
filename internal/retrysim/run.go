package retrysim

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"gcsup/backoff"
)

// A run ends when every client has been served or has stopped. With some policies
// this never happens, and these limits end the run.
const (
	maxTime   = 24 * time.Hour
	maxIdle   = time.Hour // longest time without a served request while the server is up
	maxEvents = 200_000_000
)

// A Result is the result of one policy.
type Result struct {
	Policy   string // with the suffix "+gate" if clients shared gates, "+fleet" if groups heard of each other too
	Requests int64
	Wasted   int64         // requests that were not served
	Peak     int64         // most requests in a second in which the server was up
	P50      time.Duration // when half of the clients had been served; -1 for never
	P99      time.Duration // when 99 % had been served; -1 for never
	All      time.Duration // when all had been served; -1 for never
	Failed   int           // clients that stopped, or were not served by the end of the run
	MaxWait  time.Duration // longest backoff of a client, without waits at a gate
	Load     []Second      // load in each second
	CutOff   bool          // the run was stopped because of too many requests; "never" and Failed are meaningless
}

// Second is the load in one second.
type Second struct {
	Requests, Served int64
}

// Run simulates the scenario once for each of the policies, and returns the
// results in the same order. policies are names for [backoff.Named].
func Run(ctx context.Context, s Scenario, policies []string, seed uint64) ([]Result, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	if len(policies) == 0 {
		return nil, errors.New("simulation: no policy")
	}
	var runs []*run
	for _, name := range policies {
		policy, err := backoff.Named(name)
		if err != nil {
			return nil, err
		}
		runs = append(runs, newRun(s, name, policy, seed))
		if s.group > 0 {
			gated := newRun(s, name, policy, seed)
			gated.result.Policy += "+gate"
			gated.gates = make([]gate, (s.Clients+s.group-1)/s.group)
			runs = append(runs, gated)
		}
		if s.fleet {
			all := newRun(s, name, policy, seed)
			all.result.Policy += "+fleet"
			all.gates = make([]gate, (s.Clients+s.group-1)/s.group)
			all.fleet = newFleet(s.Clients, s.group)
			runs = append(runs, all)
		}
	}

	// Runs share no data. One per processor runs at a time, which also bounds
	// the memory.
	var wg sync.WaitGroup
	errs := make([]error, len(runs))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	results := make([]Result, len(runs))
	for i, r := range runs {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = r.play(ctx)
			results[i] = r.result
		})
	}
	wg.Wait()
	return results, errors.Join(errs...)
}

// run is the simulation of one policy.
type run struct {
	scenario Scenario
	policy   backoff.Policy
	limit    int    // of events, maxEvents
	tries    uint32 // retries in a row before a client stops; 0 if it never stops
	gates    []gate // nil if clients do not share gates
	fleet    *fleet // nil if the groups are independent
	random   *rand.Rand
	server   *server
	wheel    *wheel
	result   Result
	done     int64 // clients with all parts served
	last     int64 // ns; when the last request was served
}

func newRun(s Scenario, name string, policy backoff.Policy, seed uint64) *run {
	r := &run{
		scenario: s,
		policy:   policy,
		limit:    maxEvents,
		random:   rand.New(rand.NewPCG(seed, 0)),
		server:   newServer(s),
		result:   Result{Policy: name, P50: -1, P99: -1, All: -1},
	}
	if name == "bidmanager" {
		r.tries = uint32(backoff.Tries(0))
	}
	return r
}

func (r *run) play(ctx context.Context) error {
	r.wheel = new(wheel)
	defer func() { r.wheel = nil }()
	r.begin()
	if r.fleet != nil {
		r.beginBeats()
	}
	for events := 0; ; events++ {
		if events == r.limit {
			r.result.CutOff = true
			break
		}
		if events%(1<<16) == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e, ok := r.wheel.pop()
		if !ok || e.at > int64(maxTime) || e.at > max(r.last, r.server.up)+int64(maxIdle) {
			break
		}
		r.event(e)
	}
	r.result.Wasted = r.result.Requests
	for second, load := range r.result.Load {
		r.result.Wasted -= load.Served
		if int64(second+1)*int64(time.Second) <= r.server.down || int64(second)*int64(time.Second) >= r.server.up {
			r.result.Peak = max(r.result.Peak, load.Requests)
		}
	}
	r.result.Failed = r.scenario.Clients - int(r.done)
	return nil
}

// begin queues the first requests.
func (r *run) begin() {
	s := r.scenario
	first := event{count: uint32(s.Clients), left: uint16(s.parts)}
	if s.spread == 0 && r.gates == nil {
		r.wheel.push(first)
		return
	}
	first.count = 1
	for client := range s.Clients {
		if s.spread > 0 {
			first.at = r.random.Int64N(int64(s.spread))
		}
		first.client = uint32(client)
		r.wheel.push(first)
	}
}

// event makes the requests of e.
func (r *run) event(e event) {
	if e.beat {
		r.beat(e)
		return
	}
	now, g := e.at, r.gateOf(e)
	switch {
	case e.count == 0:
		g.tick = 0
		r.admit(g, now)
		return
	case g != nil && e.tries > 0 && !e.passed && g.limit > 0:
		g.waiting = append(g.waiting, e)
		r.admit(g, now)
		return
	}
	if r.fleet != nil && r.hold(e) {
		return
	}
	e.passed = false
	served := r.server.admit(e.at, int64(e.count))
	r.count(e, served)
	if r.fleet != nil {
		r.answered(e, served > 0) // the events of gates have one client each
	}
	if served > 0 {
		r.served(e, uint32(served))
	}
	if refused := e.count - uint32(served); refused > 0 {
		e.count = refused
		e.tries++
		r.refused(e)
	}
	if g != nil {
		r.admit(g, now)
	}
}

// refused queues e for the end of its wait, or stops its client.
func (r *run) refused(e event) {
	goesOn := r.tries == 0 || e.tries <= r.tries
	g := r.gateOf(e)
	if g == nil {
		if goesOn {
			r.wait(e)
		}
		return
	}
	random := r.random.Float64() // for the wait and the gate, as in backoff.Waiter
	e = g.refused(e, func(probes int) time.Duration { return r.policy.Delay(probes, random) })
	if goesOn {
		r.after(e.at, e, random)
	} else {
		g.left(e)
	}
}

func (r *run) count(e event, served int64) {
	second := int(e.at / int64(time.Second))
	for len(r.result.Load) <= second {
		r.result.Load = append(r.result.Load, Second{})
	}
	r.result.Load[second].Requests += int64(e.count)
	r.result.Load[second].Served += served
	r.result.Requests += int64(e.count)
}

// served records that count of the clients of e were served.
func (r *run) served(e event, count uint32) {
	r.last = e.at
	if g := r.gateOf(e); g != nil {
		e = g.served(e)
	}
	e.count, e.tries = count, 0
	if e.left--; e.left > 0 {
		e.at += int64(r.scenario.pause)
		r.wheel.push(e)
		return
	}
	before := r.done
	r.done += int64(count)
	clients := int64(r.scenario.Clients)
	for _, share := range []struct {
		percent int64
		when    *time.Duration
	}{{50, &r.result.P50}, {99, &r.result.P99}, {100, &r.result.All}} {
		if target := (clients*share.percent + 99) / 100; before < target && r.done >= target {
			*share.when = time.Duration(e.at)
		}
	}
}

// wait queues e for the end of its wait.
func (r *run) wait(e event) {
	now, together := e.at, e.count
	if r.policy.Jitter != backoff.NoJitter {
		e.count = 1 // each client has its own random wait
		for range together {
			r.after(now, e, r.random.Float64())
		}
		return
	}
	r.after(now, e, r.random.Float64())
}

func (r *run) after(now int64, e event, random float64) {
	wait := r.policy.Delay(int(e.tries)-1, random)
	r.result.MaxWait = max(r.result.MaxWait, wait)
	e.at = now + int64(wait)
	r.wheel.push(e)
}
