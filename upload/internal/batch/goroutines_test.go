package batch

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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

// TestAwait checks that Await waits without an end while ctx lasts, and then for a time only.
func TestAwait(t *testing.T) {
	for _, tt := range []struct {
		done, canceled, took time.Duration
		want                 bool
	}{
		{0, time.Hour, 0, true},
		{time.Minute, time.Hour, time.Minute, true},
		{time.Minute + 1, time.Minute, time.Minute + 1, true},
		{time.Hour, time.Minute, time.Minute + time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tt.canceled)
			defer cancel()
			done, began := make(chan struct{}), time.Now()
			(*Goroutines)(nil).Run(func() {
				time.Sleep(tt.done)
				close(done)
			})
			if got := Await(ctx, done, time.Second); got != tt.want || time.Since(began) != tt.took {
				t.Errorf("%+v: %v after %v", tt, got, time.Since(began))
			}
			<-done
		})
	}
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
