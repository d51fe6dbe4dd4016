package backoff_test

import (
	"fmt"
	"time"

	"gcsup/backoff"
)

// The waits of the zero Policy for the middle of the random range. A program
// draws the number anew for each wait, with rand.Float64().
func ExamplePolicy_Delay() {
	var policy backoff.Policy
	for n := range 7 {
		fmt.Print(policy.Delay(n, 0.5), " ")
	}
	// Output: 1.5s 2.5s 4.5s 8.5s 16.5s 32s 32s
}

// A budget of one minute without progress ends before the wait that would
// not fit.
func ExampleBudget() {
	budget := backoff.Budget{For: time.Minute}
	var elapsed time.Duration
	for {
		budget.Failed()
		wait, ok := budget.Next(backoff.Policy{}, 0.5, 0, elapsed)
		if !ok {
			fmt.Println("after", elapsed, "and", budget.Failures(), "failures: stop")
			return
		}
		elapsed += wait
	}
	// Output: after 33.5s and 6 failures: stop
}
