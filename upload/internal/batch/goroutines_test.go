package batch

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// TestGoroutinesAreReused checks that an idle goroutine runs the next function, that a function
// never waits for another one, and that all goroutines end with the context.
func TestGoroutinesAreReused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := NewGoroutines(ctx)
		first, second := goroutineOf(g), goroutineOf(g)
		if first != second {
			t.Error("the second function has a new goroutine, although one is idle")
		}
		blocked := make(chan struct{})
		g.Run(func() { <-blocked })
		if goroutineOf(g) == first {
			t.Error("two functions at a time have one goroutine")
		}
		close(blocked)
		cancel()
		synctest.Wait()
		goroutineOf(g) // synctest fails if a goroutine does not end
	})
}

// goroutineOf returns the name of the goroutine that runs a function of g.
func goroutineOf(g *Goroutines) string {
	id := make(chan string)
	g.Run(func() {
		stack := make([]byte, 64)
		name, _, _ := strings.Cut(string(stack[:runtime.Stack(stack, false)]), "[") // "goroutine 7 "
		id <- name
	})
	this := <-id
	synctest.Wait() // until it is idle
	return this
}
