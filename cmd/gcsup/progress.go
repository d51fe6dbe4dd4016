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
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-p.stopped:
				c.show(nil)
				return
			case <-continued:
				c.forget()
			case <-tick.C:
				draw()
			}
		}
	}()
	return p
}

// stop removes the frame.
func (p *progress) stop() {
	close(p.stopped)
	<-p.done
}
