package fakegcs

import "sync"

// FaultCount is a fault of the plan with what became of it.
type FaultCount struct {
	Fault Fault `json:"fault"`
	Seen  int   `json:"seen"`  // requests that it matched and that no earlier fault took
	Fired int   `json:"fired"` // of those, the ones it acted on
	Done  bool  `json:"done"`  // it will act no more
}

// plan is the fault plan in use.
type plan struct {
	mu     sync.Mutex
	faults []*plannedFault
}

type plannedFault struct {
	FaultCount
	perObject map[objectName]int // requests that matched but for Nth
}

type objectName struct{ bucket, object string }

// matches reports whether q is one for f; it must be asked once per request.
func (f *plannedFault) matches(q *request) bool {
	if !f.Fault.Match.matches(q) {
		return false
	}
	nth := f.Fault.Match.Nth
	if nth == 0 {
		return true
	}
	name := objectName{q.bucket, q.object}
	f.perObject[name]++
	return f.perObject[name] == nth
}

func (p *plan) add(faults []Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range faults {
		p.faults = append(p.faults, &plannedFault{FaultCount{Fault: f}, map[objectName]int{}})
	}
}

func (p *plan) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// take is what is to be done to q, or nil.
func (p *plan) take(q *request) *Action {
	p.mu.Lock()
	defer p.mu.Unlock()
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
