package main

import (
	"fmt"
	"io"
	"time"
)

// progress prints the steps of a build, and how long each took.
type progress struct {
	w     io.Writer
	now   func() time.Time
	steps int
	begun time.Time // the build
	step  time.Time // the current step
	done  int
}

func newProgress(w io.Writer, now func() time.Time, steps int) *progress {
	at := now()
	return &progress{w: w, now: now, steps: steps, begun: at, step: at}
}

// start prints the name of the next step.
func (p *progress) start(name string) {
	p.step = p.now()
	p.done++
	fmt.Fprintf(p.w, "[%d/%d] %s\n", p.done, p.steps, name)
}

// end prints the time of the step, and the time since the beginning.
func (p *progress) end() {
	now := p.now()
	fmt.Fprintf(p.w, "      %.1f s, %.1f s in all\n", now.Sub(p.step).Seconds(), now.Sub(p.begun).Seconds())
}
