package herd

import (
	"fmt"
	"strings"
	"time"
)

// Bounds of what Run simulates.
const (
	MaxClients  = 1_000_000
	MaxCapacity = 10_000_000
	MaxOutage   = 12 * time.Hour
)

// A Scenario says who meets what. The exported numbers may be changed.
type Scenario struct {
	Name     string
	About    string        // one line
	Clients  int           // how many there are, at most MaxClients
	Capacity int           // requests served per second
	Outage   time.Duration // how long the server is down

	start   time.Duration // when the outage begins
	spread  time.Duration // first requests come at random within this time; 0: all at once
	gate    bool          // no queue: one request at a time
	ramp    time.Duration // after the outage, capacity grows from nothing for this long
	refusal int64         // refusing costs this many thousandths of serving
	parts   int           // how many requests of a client have to be served, one after the other
	pause   time.Duration // between two parts
	group   int           // this many clients share a gate, and each policy runs with and without
	reply   time.Duration // a retry that a gate lets through takes this long
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
			Name:    "gate",
			About:   "all clients ask at once at a gate that lets one through at a time",
			Clients: 100, Capacity: 10, parts: 1, gate: true,
		},
		{
			Name:    "overload",
			About:   "after the outage capacity grows slowly, and refusing costs a twentieth of serving",
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
			About:   "as herd, in processes of 32 clients each, without and with a gate per process",
			Clients: 3200, Capacity: 400, Outage: time.Minute, parts: 1, group: 32, reply: 100 * time.Millisecond,
		},
	}
}

// Lookup returns the scenario of that name. The error for another name lists
// them.
func Lookup(name string) (Scenario, error) {
	var names []string
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("herd: no scenario %q: choose one of %s", name, strings.Join(names, ", "))
}

func (s Scenario) validate() error {
	switch {
	case s.Clients < 1 || s.Clients > MaxClients:
		return fmt.Errorf("herd: %d clients: want 1 to %d", s.Clients, MaxClients)
	case s.Capacity < 1 || s.Capacity > MaxCapacity:
		return fmt.Errorf("herd: capacity of %d requests per second: want 1 to %d", s.Capacity, MaxCapacity)
	case s.Outage < 0 || s.Outage > MaxOutage:
		return fmt.Errorf("herd: outage of %v: want 0 to %v", s.Outage, MaxOutage)
	}
	return nil
}
