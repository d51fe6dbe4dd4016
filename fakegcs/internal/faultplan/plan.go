// Package faultplan decides which fault of a plan acts on which request, and counts them.
package faultplan

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gcsup/fakegcs/faults"
	"gcsup/fakegcs/internal/ops"
)

// Request describes a request to a plan.
type Request struct {
	Op             faults.Op
	Method         string
	Bucket, Object string
	// Data reports whether the request carries the object bytes [From, To). To is
	// -1 if it is not known.
	Data     bool
	From, To int64
}

// matches reports whether m matches r, except for Nth, which the plan checks.
func matches(m faults.Match, r *Request) bool {
	if r.Op == ops.Control ||
		m.Op != "" && m.Op != r.Op ||
		m.Method != "" && !strings.EqualFold(m.Method, r.Method) ||
		m.Bucket != "" && m.Bucket != r.Bucket ||
		m.Object != "" && m.Object != r.Object {
		return false
	}
	if m.From == 0 && m.To == 0 {
		return true
	}
	return r.Data && (m.To == 0 || r.From < m.To) && (r.To < 0 || r.To > m.From)
}

// Plan is the fault plan in use. The zero value is an empty plan.
type Plan struct {
	used     atomic.Bool // there are faults
	mu       sync.Mutex  // guards the fields below
	faults   []*plannedFault
	counters []*counter
}

type plannedFault struct {
	faults.Count
	nth *counter // nil: its Match has no Nth
}

func (f *plannedFault) matches(r *Request) bool {
	if f.nth == nil {
		return matches(f.Fault.Match, r)
	}
	return f.nth.latest == f.Fault.Match.Nth
}

// counter counts requests per object for the faults whose Match differs only in
// Nth. It counts all requests, even those on which an earlier fault acts.
type counter struct {
	match     faults.Match
	perObject map[objectName]int
	latest    int // the number of the current request; 0 if it does not match
}

type objectName struct{ bucket, object string }

func (c *counter) count(r *Request) {
	c.latest = 0
	if matches(c.match, r) {
		name := objectName{r.Bucket, r.Object}
		c.perObject[name]++
		c.latest = c.perObject[name]
	}
}

// Empty reports whether the plan has no faults. It costs less than the other methods.
func (p *Plan) Empty() bool { return !p.used.Load() }

// Add appends valid faults to the plan.
func (p *Plan) Add(list []faults.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	counters := map[faults.Match]*counter{} // new ones, because the faults count from now on
	for _, f := range list {
		planned := &plannedFault{Count: faults.Count{Fault: f}}
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
	p.used.Store(len(p.faults) > 0)
}

// Clear removes all faults.
func (p *Plan) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults, p.counters = nil, nil
	p.used.Store(false)
}

// ByObject reports whether the plan needs the names of objects.
func (p *Plan) ByObject() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.counters) > 0 || slices.ContainsFunc(p.faults, func(f *plannedFault) bool { return f.Fault.Match.Object != "" && !f.Done })
}

// Take counts r and returns the action of the fault that acts on it, or nil.
func (p *Plan) Take(r *Request) *faults.Action {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.counters {
		c.count(r)
	}
	for _, c := range p.faults {
		if c.Done || !c.matches(r) {
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

// Report returns the faults in the order of the plan, with their counts.
func (p *Plan) Report() []faults.Count {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := make([]faults.Count, len(p.faults))
	for i, c := range p.faults {
		counts[i] = c.Count
	}
	return counts
}
