package fakegcs

import (
	"slices"
	"sync"
)

// FaultCount is a fault of the plan with what became of it.
type FaultCount struct {
	Fault Fault `json:"fault"`
	Seen  int   `json:"seen"`  // requests that it matched and that no earlier fault took
	Fired int   `json:"fired"` // of those, the ones it acted on
	Done  bool  `json:"done"`  // it will act no more
}

// plan is the fault plan in use.
type plan struct {
	mu       sync.Mutex
	faults   []*plannedFault
	counters []*counter
}

type plannedFault struct {
	FaultCount
	nth *counter // nil: its Match asks for no Nth
}

func (f *plannedFault) matches(q *request) bool {
	if f.nth == nil {
		return f.Fault.Match.matches(q)
	}
	return f.nth.latest == f.Fault.Match.Nth
}

// counter counts requests per object for the faults whose Match is the same but
// for Nth. It counts all requests, also those on which an earlier fault acts.
type counter struct {
	match     Match
	perObject map[objectName]int
	latest    int // the number of the request that is being looked at; 0: no match
}

type objectName struct{ bucket, object string }

func (c *counter) count(q *request) {
	c.latest = 0
	if c.match.matches(q) {
		name := objectName{q.bucket, q.object}
		c.perObject[name]++
		c.latest = c.perObject[name]
	}
}

func (p *plan) add(faults []Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	counters := map[Match]*counter{} // of this call: they count from now on
	for _, f := range faults {
		planned := &plannedFault{FaultCount: FaultCount{Fault: f}}
		if match := f.Match; match.Nth != 0 {
			match.Nth = 0
			if counters[match] == nil {
				counters[match] = &counter{match: match, perObject: map[objectName]int{}}
				p.counters = append(p.counters, counters[match])
			}
			planned.nth = counters[match]
		}
		p.faults = append(p.faults, planned)
	}
}

func (p *plan) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults, p.counters = nil, nil
}

// byObject tells whether the plan needs the names of objects.
func (p *plan) byObject() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.counters) > 0 || slices.ContainsFunc(p.faults, func(f *plannedFault) bool { return f.Fault.Match.Object != "" && !f.Done })
}

// take is what is to be done to q, or nil.
func (p *plan) take(q *request) *Action {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.counters {
		c.count(q)
	}
	for _, c := range p.faults {
		if c.Done || !c.matches(q) {
			continue
		}
		c.Seen++
		if c.Seen <= c.Fault.Skip {
			continue
		}
		c.Fired++
		c.Done = c.Fault.Times >= 0 && c.Fired >= max(c.Fault.Times, 1)
		do := c.Fault.Do
		return &do
	}
	return nil
}

func (p *plan) report() []FaultCount {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := make([]FaultCount, len(p.faults))
	for i, c := range p.faults {
		counts[i] = c.FaultCount
	}
	return counts
}
