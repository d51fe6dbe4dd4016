package main

import (
	"os"
	"time"
)

const (
	frameEvery = 150 * time.Millisecond
	lineEvery  = 10 * time.Second
)

// progress shows a display on the console: frames on a terminal, else a line every
// lineEvery.
type progress struct {
	display *display
	stopped chan struct{}
	done    chan struct{}
}

// startProgress starts to show d, in a block or in lines.
func startProgress(c *console, d *display, mode progressMode) *progress {
	p := &progress{display: d, stopped: make(chan struct{}), done: make(chan struct{})}
	every, draw := lineEvery, func() {
		if line := d.plainLine(time.Now()); line != "" {
			c.message("%s  %s", time.Now().Format(time.RFC3339), line)
		}
	}
	var continued <-chan os.Signal
	ignore := func() {}
	if mode == progressBlock {
		continued, ignore = notifyContinued()
		every, draw = frameEvery, func() {
			// In the background, the terminal belongs to the shell.
			if columns, height, ok := c.size(); ok && foreground(c.w) {
				c.show(d.frame(time.Now(), columns, height))
			}
		}
	}
	go func() {
		defer close(p.done)
		defer ignore()
		p.run(every, continued, draw, c.forget)
		c.show(nil)
	}()
	return p
}

// run calls draw in that interval, until stop is called. It calls forget after the process was
// stopped and continued, before anything else is drawn.
func (p *progress) run(every time.Duration, continued <-chan os.Signal, draw, forget func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	last := time.Now()
	for {
		ended, due := false, false
		select {
		case <-p.stopped:
			ended = true
		case <-continued:
			forget()
		case <-tick.C:
			due = true
		}
		// The process may have been stopped until now. The signal can then arrive after the tick.
		late := time.Since(last) > 2*every
		if wasContinued(continued, late) {
			forget()
		}
		last = time.Now()
		if ended {
			return
		}
		if due {
			draw()
		}
	}
}

// signalGrace is how long the signal of a process that continues is waited for.
const signalGrace = 20 * time.Millisecond

// wasContinued reports whether the process continues after it was stopped. If late is true, it
// waits for the signal.
func wasContinued(continued <-chan os.Signal, late bool) bool {
	select {
	case <-continued:
		return true
	default:
	}
	if !late {
		return false
	}
	select {
	case <-continued:
		return true
	case <-time.After(signalGrace):
		return false
	}
}

// stop removes the frame.
func (p *progress) stop() {
	close(p.stopped)
	<-p.done
}
