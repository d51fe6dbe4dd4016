package main

import (
	"sync"
	"time"

	"gcsup/upload"
)

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
)

// view renders the state of one upload or of a batch.
type view interface {
	// note updates the state with an event of an upload.
	note(e upload.Event, now time.Time)
	// ended updates the state with the outcome of an upload.
	ended(res *upload.Result, err error, now time.Time)
	// bar returns a line for a terminal of that many columns.
	bar(now time.Time, columns int) string
	// plainLine returns a line of a log.
	plainLine(now time.Time) string
}

// progress shows a view on the console: a bar on a terminal, else a line every
// lineEvery.
type progress struct {
	console *console
	mu      sync.Mutex
	view    view
	stopped chan struct{}
	done    chan struct{}
}

// startProgress starts to show a view. bar allows the bar.
func startProgress(c *console, v view, bar bool) *progress {
	p := &progress{console: c, view: v, stopped: make(chan struct{}), done: make(chan struct{})}
	every, draw := lineEvery, p.line
	if _, ok := c.width(); ok && bar {
		every, draw = barEvery, p.bar
	}
	go func() {
		defer close(p.done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-p.stopped:
				c.show("")
				return
			case <-tick.C:
				draw()
			}
		}
	}()
	return p
}

func (p *progress) note(e upload.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view.note(e, time.Now())
}

func (p *progress) ended(res *upload.Result, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view.ended(res, err, time.Now())
}

func (p *progress) bar() {
	columns, ok := p.console.width()
	if !ok {
		return
	}
	p.mu.Lock()
	line := p.view.bar(time.Now(), columns)
	p.mu.Unlock()
	p.console.show(line)
}

func (p *progress) line() {
	p.mu.Lock()
	line := p.view.plainLine(time.Now())
	p.mu.Unlock()
	p.console.message("%s", line)
}

// stop removes the bar.
func (p *progress) stop() {
	close(p.stopped)
	<-p.done
}
