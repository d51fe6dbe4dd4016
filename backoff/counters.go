package backoff

import (
	"maps"
	"sync"
	"time"
)

// Counters count what [Retry] and [Transport] do, so that initial wait, maximum
// and tries can be chosen from what happened: many BudgetSpent with few
// Held ask for more tries, much Waited with few Failures for a shorter
// initial wait.
//
// The zero value is ready to use. Counters are safe for concurrent use and may
// be shared by any number of operations.
type Counters struct {
	mu     sync.Mutex
	counts Counts
}

// Counts are the values of [Counters] at one moment.
type Counts struct {
	Attempts    int64            // calls of an operation, or HTTP requests
	Failures    int64            // attempts that failed
	Retries     int64            // attempts that followed a wait
	Waits       int64            // waits begun; a long one for the Gate counts once for each Pause
	Waited      time.Duration    // sum of their lengths
	Held        int64            // retries that had to wait for the Gate
	BudgetSpent int64            // operations given up because their budget was spent
	Causes      map[string]int64 // retries by cause: a status code such as "503", "connection", "timeout", "dns", "partial", "other"
}

// Counts returns a copy of the values.
func (c *Counters) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.counts
	counts.Causes = maps.Clone(counts.Causes)
	return counts
}

// update changes the counts. A nil c counts nothing.
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

func (c *Counters) held() { c.update(func(counts *Counts) { counts.Held++ }) }

func (c *Counters) spent() { c.update(func(counts *Counts) { counts.BudgetSpent++ }) }
