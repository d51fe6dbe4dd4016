package retrysim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Limits of a Scenario.
const (
	MaxClients  = 1_000_000
	MaxCapacity = 10_000_000
	MaxOutage   = 12 * time.Hour
)

// A Scenario describes the clients and the server of a simulation. The exported
// numbers may be changed.
type Scenario struct {
	Name     string
	About    string        // description, one line
	Clients  int           // number of clients, at most MaxClients
	Capacity int           // requests served per second
	Outage   time.Duration // how long the server is down

	start   time.Duration // when the outage starts
	spread  time.Duration // first requests are at random times in this span; 0 for all at once
	single  bool          // no queue; the server serves one request at a time
	ramp    time.Duration // time after the outage in which capacity grows from 0
	refusal int64         // cost of a refusal, in thousandths of the cost of serving
	parts   int           // requests of each client, served one after the other
	pause   time.Duration // time between two parts
	group   int           // number of clients that share a circuit breaker; each policy runs with and without
	reply   time.Duration // duration of a retry that a breaker admits, and of each request to service

	// The simulations of docs/explain/backoff.md, which are tests, set these.
	service func(random *rand.Rand) service // instead of the server; its replies take time
	pacer   func(r *run, number int) pacer  // makes the requests of each client
	length  time.Duration                   // when the simulation ends at the latest; 0 for maxTime
}

// Scenarios returns all scenarios, the default one first.
func Scenarios() []Scenario {
	return []Scenario{
		{
			Name:    "herd",
			About:   "the server is down when all clients ask at once, and comes back after the outage",
			Clients: 1000, Capacity: 100, Outage: time.Minute, parts: 1,
		},
		{
			Name:    "single",
			About:   "all clients send a request at once; the server serves one at a time",
			Clients: 100, Capacity: 10, parts: 1, single: true,
		},
		{
			Name:    "overload",
			About:   "after the outage, the capacity of the server grows slowly; a refused request costs a twentieth of a served one",
			Clients: 5000, Capacity: 200, Outage: 10 * time.Second, parts: 1,
			spread: 10 * time.Second, ramp: 2 * time.Minute, refusal: 50,
		},
		{
			Name:    "uploads",
			About:   "uploads of 30 parts, one per second, meet an outage after 15 s; each part served is progress",
			Clients: 200, Capacity: 1000, Outage: time.Minute, start: 15 * time.Second,
			spread: time.Second, parts: 30, pause: time.Second,
		},
		{
			Name:    "processes",
			About:   "as herd, in processes of 32 clients each, without and with a circuit breaker per process",
			Clients: 3200, Capacity: 400, Outage: time.Minute, parts: 1, group: 32, reply: 100 * time.Millisecond,
		},
	}
}

// Lookup returns the scenario with the given name. The error for any other name
// lists the names.
func Lookup(name string) (Scenario, error) {
	var names []string
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("simulation: no scenario %q: choose one of %s", name, strings.Join(names, ", "))
}

func (s Scenario) end() int64 { return int64(cmp.Or(s.length, maxTime)) }

func (s Scenario) validate() error {
	switch {
	case s.Clients < 1 || s.Clients > MaxClients:
		return fmt.Errorf("simulation: %d clients: want 1 to %d", s.Clients, MaxClients)
	case s.Capacity < 1 || s.Capacity > MaxCapacity:
		return fmt.Errorf("simulation: capacity of %d requests per second: want 1 to %d", s.Capacity, MaxCapacity)
	case s.Outage < 0 || s.Outage > MaxOutage:
		return fmt.Errorf("simulation: outage of %v: want 0 to %v", s.Outage, MaxOutage)
	}
	return nil
}
