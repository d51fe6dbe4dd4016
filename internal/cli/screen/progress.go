package screen

import (
	"os"
	"time"
)

const (
	frameEvery = 150 * time.Millisecond
	lineEvery  = 10 * time.Second
)

// Progress shows a display on the console: frames on a terminal, else a line every
// lineEvery.
type Progress struct {
	stopped chan struct{}
	done    chan struct{}
}

// ShowLines prints a line about d every lineEvery, until the Progress is stopped.
func ShowLines(c *Console, d *Display) *Progress {
	return start(c, lineEvery, nil, func() {}, func() {
		if line := d.plainLine(time.Now()); line != "" {
			c.Message("%s  %s", time.Now().Format(time.RFC3339), line)
		}
	})
}

// ShowFrames draws d below the messages of c, which must be on a terminal, until the Progress is stopped.
func ShowFrames(c *Console, d *Display) *Progress {
	continued, ignore := notifyContinued()
	return start(c, frameEvery, continued, ignore, func() {
		// In the background, the terminal belongs to the shell.
		if columns, height, ok := c.size(); ok && foreground(c.w) {
			c.show(d.frame(time.Now(), columns, height))
		}
	})
}

// start calls draw in that interval, until the Progress is stopped. At the end it calls ignore.
func start(c *Console, every time.Duration, continued <-chan os.Signal, ignore, draw func()) *Progress {
	p := &Progress{stopped: make(chan struct{}), done: make(chan struct{})}
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
func (p *Progress) run(every time.Duration, continued <-chan os.Signal, draw, forget func()) {
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

// Stopped returns a channel that is closed when Stop is called.
func (p *Progress) Stopped() <-chan struct{} { return p.stopped }

// Stop removes the frame.
func (p *Progress) Stop() {
	close(p.stopped)
	<-p.done
}
