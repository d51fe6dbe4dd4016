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

// progress shows one upload on the console: a bar on a terminal, else a line
// every lineEvery.
type progress struct {
	console *console
	mu      sync.Mutex
	view    *progressView
	stopped chan struct{}
	done    chan struct{}
}

// startProgress starts to show an upload of source. bar allows the bar.
func startProgress(c *console, source string, bar bool) *progress {
	p := &progress{console: c, view: newProgressView(source), stopped: make(chan struct{}), done: make(chan struct{})}
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
