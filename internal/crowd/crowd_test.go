package crowd

import (
	"fmt"
	"testing"
	"time"

	"gcsup/internal/testsize"
)

// crowdOf returns a crowd with a number of workers for each condition.
func crowdOf(counts map[Condition]int) Crowd {
	c := Crowd{}
	for cond, n := range counts {
		for i := range n {
			c[fmt.Sprintf("%s-%d", cond, i)] = cond
		}
	}
	return c
}

// admitted returns how many workers with a condition may take tasks.
func admitted(c Crowd, cond Condition, now time.Time) (n int) {
	for name, is := range c {
		if is == cond && c.Admits(name, now) {
			n++
		}
	}
	return n
}

func TestGate(t *testing.T) {
	now := time.Unix(1e9, 0)
	for name, c := range map[string]struct {
		counts map[Condition]int
		of     Condition
		want   int
	}{
		"all is well":                       {map[Condition]int{Sending: 9, Idle: 3}, Idle, 3},
		"those that are ready are not held": {map[Condition]int{Ready: 2, Waiting: 900}, Ready, 2},
		"workers that are ready count":      {map[Condition]int{Ready: 3, Sending: 5, Waiting: 900}, Waiting, 8},
		"one in trouble":                    {map[Condition]int{Sending: 9, Troubled: 1}, Troubled, 1},
		"one in trouble alone":              {map[Condition]int{Troubled: 1}, Troubled, 1},
		"one in trouble, others idle":       {map[Condition]int{Troubled: 1, Idle: 5}, Idle, 5},
		"most are answered":                 {map[Condition]int{Sending: 9, Troubled: 3}, Troubled, 3},
		"outage":                            {map[Condition]int{Troubled: 1000}, Troubled, 1},
		"outage, others wait":               {map[Condition]int{Troubled: 1, Waiting: 999}, Waiting, 1}, // or the one in trouble
		"one is answered":                   {map[Condition]int{Sending: 1, Waiting: 999}, Waiting, 1},
		"some are answered":                 {map[Condition]int{Sending: 64, Waiting: 936}, Waiting, 64},
		"workers are never held forever":    {map[Condition]int{Waiting: 3}, Waiting, 1},
		"unfit workers take no turn":        {map[Condition]int{Unfit: 900, Troubled: 2}, Troubled, 1},
		"those that are answered continue":  {map[Condition]int{Sending: 2, Waiting: 900}, Sending, 2},
	} {
		got := admitted(crowdOf(c.counts), c.of, now)
		if name == "outage, others wait" {
			got += admitted(crowdOf(c.counts), Troubled, now)
		}
		if got != c.want {
			t.Errorf("%s: %d of those %s are admitted, want %d", name, got, c.of, c.want)
		}
	}
}

// TestGateHoldsNewWorkers checks that not all workers that start during an outage try the service.
func TestGateHoldsNewWorkers(t *testing.T) {
	c := crowdOf(map[Condition]int{Troubled: 10, Idle: 100})
	now := time.Unix(1e9, 0)
	if n := admitted(c, Idle, now) + admitted(c, Troubled, now); n != 1 {
		t.Errorf("%d of 110 workers are admitted, want 1", n)
	}
}

// TestGateTakesTurns checks that every worker is admitted at some time during an outage: one with a
// broken network must not keep the others waiting.
func TestGateTakesTurns(t *testing.T) {
	c := crowdOf(map[Condition]int{Waiting: 20})
	turns := map[string]int{}
	for epoch := range 1000 {
		now := time.Unix(0, int64(epoch)*int64(Epoch))
		for name := range c {
			if c.Admits(name, now) {
				turns[name]++
			}
		}
	}
	for name := range c {
		if turns[name] < 10 {
			t.Errorf("%s was admitted in %d of 1000 epochs", name, turns[name])
		}
	}
}

// TestGateOpens checks that the number of admitted workers doubles once the service answers.
func TestGateOpens(t *testing.T) {
	workers := testsize.Full(1000, 300)
	c := crowdOf(map[Condition]int{Waiting: workers})
	now := time.Unix(1e9, 0)
	steps := 0
	for before := 0; before < workers; steps++ {
		var let []string
		for name, is := range c {
			if is == Waiting && c.Admits(name, now) {
				let = append(let, name)
			}
		}
		if len(let) > max(1, before) {
			t.Fatalf("step %d: %d workers are admitted beside %d that are answered", steps, len(let), before)
		}
		for _, name := range let {
			c[name] = Sending
		}
		if before += len(let); steps > 20 {
			t.Fatalf("after %d steps %d of %d workers are admitted", steps, before, workers)
		}
	}
	t.Logf("%d workers are admitted in %d steps", workers, steps)
}

func TestSharing(t *testing.T) {
	c := crowdOf(map[Condition]int{Sending: 3, Idle: 2, Waiting: 2, Troubled: 1, Unfit: 1})
	for name, want := range map[string][2]int{
		"sending-0": {0, 4}, "sending-1": {1, 4}, "sending-2": {2, 4}, "troubled-0": {3, 4}, // those that have tasks
		"idle-0": {0, 9}, "idle-1": {1, 9}, "waiting-0": {4, 5}, "unfit-0": {4, 5},
	} {
		if number, workers := c.Sharing(name); number != want[0] || workers != want[1] {
			t.Errorf("%s is number %d of %d, want %d of %d", name, number, workers, want[0], want[1])
		}
	}
	if number, workers := (Crowd{}).Sharing("new"); number != 0 || workers != 1 {
		t.Errorf("a worker alone is number %d of %d", number, workers)
	}
}

func TestShare(t *testing.T) {
	c := crowdOf(map[Condition]int{Sending: 3, Idle: 5, Waiting: 2, Troubled: 1})
	if got := c.Share(100, "sending-0"); got != 25 {
		t.Errorf("one of 4 workers that have uploads gets %v of 100, want 25", got)
	}
	if got := c.Share(110, "idle-0"); got != 10 {
		t.Errorf("one of 11 workers, which has nothing yet, gets %v of 110, want 10", got)
	}
	if got := (Crowd{}).Share(100, "new"); got != 100 {
		t.Errorf("a worker alone gets %v of 100", got)
	}
}
