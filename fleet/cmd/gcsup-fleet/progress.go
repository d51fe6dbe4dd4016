package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"gcsup/fleet/internal/fleet"
	"gcsup/internal/cli/process"
)

const (
	// frameEvery is the time between two states of the progress on a terminal or in JSON.
	frameEvery = time.Second

	// lineEvery is the time between two lines of the progress without a terminal.
	lineEvery = 10 * time.Second

	// rateWindow is the time over which the rate of the progress is the mean.
	rateWindow = 10 * time.Second
)

// progress shows how far a fleet is: in one line of a terminal that it redraws, in a line at
// intervals, or in lines of JSON.
type progress struct {
	every time.Duration
	show  func(s *fleet.Status, at time.Time)
	clear func() // removes the line from the terminal

	rates []rateSample
}

// rateSample is the rate of a fleet at some time.
type rateSample struct {
	at   time.Time
	rate int64
}

// newProgress returns a progress for the streams of a command.
func newProgress(std stdio, asJSON bool) *progress {
	p := &progress{every: lineEvery, clear: func() {}}
	_, _, redraws := process.Terminal(std.err)
	switch {
	case asJSON:
		p.every = frameEvery
		p.show = func(s *fleet.Status, at time.Time) { _ = json.NewEncoder(std.out).Encode(p.line(s, at)) }
	case redraws:
		p.every = frameEvery
		p.show = func(s *fleet.Status, at time.Time) {
			columns, _, _ := process.Terminal(std.err)
			// The last column stays free, because some terminals wrap the line there.
			_, _ = fmt.Fprintf(std.err, "\r%s\x1b[K", cut(p.line(s, at).String(), columns-1))
		}
		p.clear = func() { _, _ = io.WriteString(std.err, "\r\x1b[K") }
	default:
		p.show = func(s *fleet.Status, at time.Time) {
			std.message("%s  %s", at.Format(time.RFC3339), p.line(s, at))
		}
	}
	return p
}

// cut returns the first parts of a line, which are separated by commas, that fit in columns.
func cut(line string, columns int) string {
	for len(line) > columns {
		i := strings.LastIndex(line, ", ")
		if i < 0 {
			return line[:max(columns, 0)]
		}
		line = line[:i]
	}
	return line
}

// progressLine is a line of status --wait --json before the last one.
type progressLine struct {
	V       int    `json:"v"`
	Type    string `json:"type"` // progress
	Done    int    `json:"files_done"`
	Files   int    `json:"files"`      // all, without those that failed
	Sent    int64  `json:"bytes_done"` // durable, or handed to the network
	Bytes   int64  `json:"bytes"`
	Failed  int    `json:"failed"`
	Rate    int64  `json:"bytes_per_s"` // mean of the last 10 s
	ETA     *int64 `json:"eta_s"`       // null if the rate is 0
	Workers int    `json:"workers"`     // without those that are silent
	Drain   bool   `json:"draining"`
}

// line returns the progress at a time.
func (p *progress) line(s *fleet.Status, at time.Time) progressLine {
	for len(p.rates) > 0 && at.Sub(p.rates[0].at) > rateWindow {
		p.rates = p.rates[1:]
	}
	p.rates = append(p.rates, rateSample{at, s.Rate})
	live, left := s.Live(), s.Left()
	l := progressLine{
		V: 1, Type: "progress", Done: s.Done.Files, Files: s.Done.Files + s.Active.Files + s.Waiting.Files,
		Bytes: s.Done.Bytes + s.Active.Bytes + s.Waiting.Bytes, Failed: s.Failed, Workers: len(live), Drain: s.Draining,
	}
	l.Sent = l.Bytes - left
	for _, r := range p.rates {
		l.Rate += r.rate / int64(len(p.rates))
	}
	if l.Rate > 0 {
		seconds := left / l.Rate
		l.ETA = &seconds
	}
	return l
}

// String returns the line for people, the most important parts first.
func (l progressLine) String() string {
	percent := 100
	switch {
	case l.Bytes > 0:
		percent = int(float64(l.Sent) / float64(l.Bytes) * 100)
	case l.Files > 0: // they are empty
		percent = l.Done * 100 / l.Files
	}
	parts := []string{
		fmt.Sprintf("%d%%", percent),
		fmt.Sprintf("%s of %s files", humanize.Comma(int64(l.Done)), humanize.Comma(int64(l.Files))),
		fmt.Sprintf("%s of %s", humanize.IBytes(uint64(l.Sent)), humanize.IBytes(uint64(l.Bytes))),
		humanize.IBytes(uint64(l.Rate)) + "/s",
	}
	if l.ETA != nil {
		parts = append(parts, (time.Duration(*l.ETA)*time.Second).String()+" left")
	}
	switch l.Workers {
	case 0:
		parts = append(parts, "no workers")
	case 1:
		parts = append(parts, "1 worker")
	default:
		parts = append(parts, fmt.Sprintf("%d workers", l.Workers))
	}
	if l.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", l.Failed))
	}
	if l.Drain {
		parts = append(parts, "draining")
	}
	return strings.Join(parts, ", ")
}
