package main

import (
	"fmt"
	"net/netip"
	"time"

	"gcsup/internal/badlink"
	"gcsup/internal/benchrun"
)

// silence is a way in which the packets of a link disappear.
type silence struct {
	name, title string
	atStart     bool // it begins before the upload, and not when a third of the file was sent
	begin       func(l *badlink.Net)
	lasts       time.Duration              // 0 if it does not end
	end         func(l *badlink.Net) error // called after lasts
	limit       time.Duration              // within which each connection must be replaced, from the end, or from the beginning if there is no end
}

// silentLink carries a file of silentSize in about 16 s.
const silentSize = 64 << 20

var silentLink = badlink.Conditions{Delay: 25 * time.Millisecond, Rate: 32 * mbit, Queue: 1 << 20}

// A connection is replaced after the stall timeout. The slack is for the wait before a
// retry, and for the handshake. On a link that comes back, it is replaced when an attempt to
// connect has timed out and the longest wait is over, or after the stall timeout.
const (
	slack     = 5 * time.Second
	reconnect = 30*time.Second + 33*time.Second
)

// silences returns the kinds of silence.
func silences() []silence {
	return []silence{
		{name: "hole-start", title: "one of two addresses drops all packets from the start", atStart: true, limit: stall + slack,
			begin: func(l *badlink.Net) { l.SetDead(l.Servers()[0], true) }},
		{name: "hole", title: "the address in use drops all packets after a third of the file", limit: stall + slack,
			begin: func(l *badlink.Net) { l.SetDead(busiest(l), true) }},
		{name: "outage", title: fmt.Sprintf("the link is away for %v after a third of the file, and then the client has another address", outage),
			begin: func(l *badlink.Net) { l.SetDown(true) }, lasts: outage, limit: max(stall, reconnect) + slack,
			end: func(l *badlink.Net) error {
				defer l.SetDown(false)
				return l.MoveClient()
			}},
	}
}

// busiest returns the address to which the client sent the most.
func busiest(l *badlink.Net) netip.Addr {
	var busiest netip.Addr
	sent := l.Sent()
	for a, n := range sent {
		if n > sent[busiest] {
			busiest = a
		}
	}
	return busiest
}

// comparison uploads a file over one connection and over several. A run fails if the upload
// fails, waits for too long, or sends committed bytes again.
func (k silence) comparison(file string) benchrun.Comparison {
	server := benchrun.Server{Link: silentLink, Congestion: "bbr"}
	flags := []string{"--verbose", "--progress=off", fmt.Sprint("--stall-timeout=", stall)}
	var o silentUpload // of the last run
	figure := func(title string, of func() float64) benchrun.Figure {
		return benchrun.Figure{Title: title, Of: func(*benchrun.Run) (float64, error) { return of(), nil }}
	}
	return benchrun.Comparison{
		Name: k.name, Title: fmt.Sprintf("%d MiB, %s; stall timeout %v", silentSize>>20, k.title, stall), Once: true,
		Ways: []benchrun.Way{
			cp("1 connection", server, file, append(flags, "--parallel=off")...),
			cp(fmt.Sprint(linkConnections, " connections"), server, file, append(flags, fmt.Sprint("--parallel=", linkConnections), "--parallel-by=compose")...),
		},
		Figures: []benchrun.Figure{
			figure("runs", func() float64 { return float64(o.runs) }),
			figure("wall s", func() float64 { return o.wall.Seconds() }),
			figure("all replaced after s", func() float64 { return o.replaced.Seconds() }),
			figure("limit s", func() float64 { return k.limit.Seconds() }),
			figure("KiB received", func() float64 { return float64(o.received >> 10) }),
			figure("committed bytes sent again", func() float64 { return float64(o.committed) }),
		},
		Prepare: func(*benchrun.Suite, *benchrun.Process) error { return benchrun.Fill(file, silentSize) },
		Do: func(s *benchrun.Suite, r *benchrun.Run) (err error) {
			if o, err = k.upload(s, r); err == nil && (o.replaced > k.limit || o.committed > 0) {
				s.Fail("%s: %s: waited for too long, or sent committed bytes again\n%s", k.name, r.Way.Name, o.output)
			}
			return err
		},
	}
}

// silentUpload describes an upload that succeeded in spite of a silence.
type silentUpload struct {
	cost
	runs     int    // processes that it needed
	output   []byte // of the last process
	wall     time.Duration
	replaced time.Duration // until the last connection was replaced
}

// temporary is the exit code of gcsup after which the same command continues.
const temporary = 75

// upload runs gcsup until the file is uploaded.
func (k silence) upload(s *benchrun.Suite, r *benchrun.Run) (o silentUpload, err error) {
	l := r.Server.Link
	began := time.Now()
	if k.atStart {
		k.begin(l)
	}
	p, err := s.StartClient(r)
	if err != nil {
		return o, err
	}
	defer func() { p.Kill() }() // it may be another process then
	since := time.Now()         // when connections must be replaced
	if !k.atStart {
		err := p.Until("a third of the file was sent", func() (bool, error) {
			var sent int64
			for _, bytes := range l.Sent() {
				sent += bytes
			}
			return sent >= silentSize/3, nil
		})
		if err != nil {
			return o, err
		}
		k.begin(l)
		since = time.Now()
	}
	var over <-chan time.Time
	if k.end != nil {
		over = time.After(k.lasts)
		since = since.Add(k.lasts)
	}
	for o.runs = 1; ; {
		select {
		case <-over:
			if err := k.end(l); err != nil {
				return o, err
			}
			continue
		case <-p.Ended:
		}
		if p.ExitCode() != temporary {
			break
		}
		o.runs++
		next, err := s.StartClient(r)
		if err != nil {
			return o, err
		}
		p = next
	}
	o.wall, o.output = time.Since(began), p.Output()
	if err := p.Failure(); err != nil {
		return o, err
	}
	report, err := r.Server.LastReport()
	if err != nil {
		return o, err
	}
	o.replaced = max(0, lastContinued(report.Log).Sub(since))
	o.cost, err = costOf(report.Log)
	return o, err
}
