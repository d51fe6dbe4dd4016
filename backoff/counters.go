package backoff

import (
	"maps"
	"sync"
	"time"
)

// Counters count what [Retry] and [Transport] do. The counts help to choose a
// policy and a budget. If BudgetSpent is high and Blocked is low, allow more
// retries. If Waited is high and Failures is low, shorten the initial wait.
//
// The zero value is ready to use. Counters are safe for concurrent use. Any
// number of operations may share them.
type Counters struct {
	mu     sync.Mutex
	counts Counts
}

// Counts are the values of [Counters] at one moment.
type Counts struct {
	Attempts    int64            // calls of an operation, or HTTP requests
	Failures    int64            // attempts that failed
	Retries     int64            // attempts that followed a wait
	Waits       int64            // waits that began; a wait for the Breaker counts once for each Pause
	Waited      time.Duration    // total length of the waits
	Blocked     int64            // retries that had to wait for the Breaker
	BudgetSpent int64            // operations that stopped because their budget was spent
	Causes      map[string]int64 // retries by cause: a status code such as "503", or "connection", "timeout", "dns", "partial" or "other"
}

// Counts returns a copy of the values. Those of a nil *Counters are zero.
func (c *Counters) Counts() Counts {
	if c == nil {
		return Counts{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.counts
	counts.Causes = maps.Clone(counts.Causes)
	return counts
}

// update calls change with the counts locked. It does nothing if c is nil.
func (c *Counters) update(change func(*Counts)) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.counts)
}

func (c *Counters) attempt(err error) {
	c.update(func(counts *Counts) {
		counts.Attempts++
		if err != nil {
			counts.Failures++
		}
	})
}

func (c *Counters) retry(err error) {
	c.update(func(counts *Counts) {
		counts.Retries++
		if counts.Causes == nil {
			counts.Causes = make(map[string]int64)
		}
		counts.Causes[cause(err)]++
	})
}

func (c *Counters) waited(d time.Duration) {
	c.update(func(counts *Counts) {
		counts.Waits++
		counts.Waited += d
	})
}

func (c *Counters) blocked() { c.update(func(counts *Counts) { counts.Blocked++ }) }

func (c *Counters) spent() { c.update(func(counts *Counts) { counts.BudgetSpent++ }) }
