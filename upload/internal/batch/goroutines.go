package batch

import (
	"context"
	"time"
)

// Goroutines run the functions of a batch. After a function has returned, its goroutine runs
// the next one, with the stack that has already grown. If each file had new goroutines, the
// growth of their stacks would take 7 % of the CPU time of a small file.
//
// A nil *Goroutines starts a new goroutine for each function.
type Goroutines struct {
	ctx  context.Context // idle goroutines end with it
	next chan func()     // idle goroutines receive from it
}

// NewGoroutines returns Goroutines that end with ctx.
func NewGoroutines(ctx context.Context) *Goroutines {
	return &Goroutines{ctx: ctx, next: make(chan func())}
}

// Run calls f in a goroutine.
func (g *Goroutines) Run(f func()) {
	if g == nil {
		go f()
		return
	}
	select {
	case g.next <- f:
	default: // none is idle
		go g.keepRunning(f)
	}
}

// keepRunning is a goroutine.
func (g *Goroutines) keepRunning(f func()) {
	for {
		f()
		f = nil // it may hold the memory of a file
		select {
		case f = <-g.next:
		case <-g.ctx.Done():
			return
		}
	}
}

// Await waits until done is closed. Once ctx is done, it waits for grace only, and
// returns false if that is not enough.
func Await(ctx context.Context, done <-chan struct{}, grace time.Duration) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
	}
	select {
	case <-done:
		return true
	case <-time.After(grace):
		return false
	}
}
