package screen

import (
	"os"
	"time"
)

const (
	frameEvery = 150 * time.Millisecond
	lineEvery  = 10 * time.Second
)

// ShowLines prints a line about d every lineEvery, until stop is called. stopped is closed then.
func ShowLines(c *Console, d *Display) (stop func(), stopped <-chan struct{}) {
	return start(c, lineEvery, jobControl{end: func() {}}, func() {
		if line := d.plainLine(time.Now()); line != "" {
			c.Message("%s  %s", time.Now().Format(time.RFC3339), line)
		}
	})
}

// ShowFrames draws d below the messages of c, which must be on a terminal, until stop is called.
func ShowFrames(c *Console, d *Display) (stop func(), stopped <-chan struct{}) {
	var w width
	return start(c, frameEvery, notifyJobControl(), func() {
		// In the background, the terminal belongs to the shell.
		if columns, height, ok := c.size(); ok && foreground(c.w) {
			c.show(w.frame(d, time.Now(), columns, height))
		}
	})
}

// width watches the width of a terminal.
type width struct {
	columns int // 0 before the first frame
	changed time.Time
}

// While the width changes, the frame is one short line. If lines of a frame were broken, and the screen is
// not full, tmux would move the first ones to its history, where they cannot be erased.
const (
	unsteady        = time.Second // after a change
	unsteadyColumns = 32
)

// frame returns the frame for a terminal of that size.
func (w *width) frame(d *Display, now time.Time, columns, height int) []liveLine {
	if w.columns != 0 && columns != w.columns {
		w.changed = now
	}
	w.columns = columns
	if now.Sub(w.changed) < unsteady {
		columns, height = min(columns, unsteadyColumns), 1
	}
	return d.frame(now, columns, height)
}

// jobControl has the signals of the shell and of the terminal.
type jobControl struct {
	stops     <-chan os.Signal // the process should stop itself, as by Ctrl-Z
	stop      func()           // stops it until it continues
	continued <-chan os.Signal // the process continues after it was stopped
	resized   <-chan os.Signal // the terminal has another size
	end       func()           // the signals are no longer needed
}

// start calls draw in that interval, until stop is called. Then it removes the frame.
func start(c *Console, every time.Duration, signals jobControl, draw func()) (stop func(), stopped <-chan struct{}) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer c.show(nil)
		defer signals.end()
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-signals.stops:
				c.Hide() // the shell writes at the cursor
				signals.stop()
			case <-signals.continued:
				c.forget()
				draw() // a tick may have come first, and a message must not be written over its frame
			case <-signals.resized:
				draw()
			case <-tick.C:
				draw()
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}, ended
}
