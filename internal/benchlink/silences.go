package main

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"gcsup/internal/badlink"
	"gcsup/internal/benchrun"
)

// silence is a way in which the packets of a link disappear.
type silence struct {
	name, title string
	atStart     bool // it begins before the upload, and not when a third of the file was sent
	begin       func(l *link)
	lasts       time.Duration       // 0 if it does not end
	end         func(l *link) error // called after lasts
	limit       time.Duration       // within which each connection must be replaced, from the end, or from the beginning if there is no end
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

// kinds returns the kinds of silence.
func kinds() []silence {
	return []silence{
		{name: "hole-start", title: "one of two addresses drops all packets from the start", atStart: true, limit: *stall + slack,
			begin: func(l *link) { l.SetDead(l.Servers()[0], true) }},
		{name: "hole", title: "the address in use drops all packets after a third of the file", limit: *stall + slack,
			begin: func(l *link) { l.SetDead(l.busiest(), true) }},
		{name: "outage", title: fmt.Sprintf("the link is away for %v after a third of the file, and then the client has another address", *outage),
			begin: func(l *link) { l.SetDown(true) }, lasts: *outage, limit: max(*stall, reconnect) + slack,
			end: func(l *link) error {
				defer l.SetDown(false)
				return l.MoveClient()
			}},
	}
}

// busiest returns the address to which the client sent the most.
func (l *link) busiest() netip.Addr {
	var busiest netip.Addr
	sent := l.Sent()
	for a, n := range sent {
		if n > sent[busiest] {
			busiest = a
		}
	}
	return busiest
}

// silences uploads a file over one connection and over several for each kind of silence,
// and prints what it cost. It fails if an upload fails, waits for too long, or sends
// committed bytes again.
func silences(s *benchrun.Suite) error {
	file := filepath.Join(s.Dir, "silent")
	failed := 0
	for _, k := range kinds() {
		if !s.Selects(k.name) {
			continue
		}
		if err := benchrun.Fill(file, silentSize); err != nil {
			return err
		}
		time.Sleep(2 * time.Second) // gcsup would wait until the file is that old
		fmt.Printf("\n%s: %d MiB, %s; stall timeout %v\n", k.name, silentSize>>20, k.title, *stall)
		t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "connections\truns\twall s\tall replaced after s\tlimit s\tMiB received\tcommitted bytes sent again\tverdict\t")
		for _, n := range []int{1, *connections} {
			o, err := k.upload(s, file, n)
			if err != nil {
				return fmt.Errorf("%s: %d connections: %w", k.name, n, err)
			}
			verdict := "ok"
			if o.replaced > k.limit || o.committed > 0 {
				verdict = "FAILED"
				failed++
				fmt.Printf("gcsup over %d connections:\n%s", n, o.output)
			}
			fmt.Fprintf(t, "%d\t%d\t%.1f\t%.1f\t%.0f\t%.2f\t%d\t%s\t\n", n, o.runs, o.wall.Seconds(), o.replaced.Seconds(), k.limit.Seconds(),
				float64(o.received)/(1<<20), o.committed, verdict)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d uploads waited for too long, or sent committed bytes again", failed)
	}
	return nil
}

// outcome describes an upload that succeeded.
type outcome struct {
	cost
	runs     int    // processes that it needed
	output   []byte // of the last process
	wall     time.Duration
	replaced time.Duration // until the last connection was replaced
}

// upload uploads a file over a new link.
func (k silence) upload(s *benchrun.Suite, file string, connections int) (outcome, error) {
	l, err := newLink(s, silentLink, "bbr")
	if err != nil {
		return outcome{}, err
	}
	o, since, err := k.uploadOver(s, l, file, connections)
	requests, stopErr := l.stop()
	if err != nil {
		return o, err
	}
	if stopErr != nil {
		return o, stopErr
	}
	o.replaced = max(0, lastContinued(requests).Sub(since))
	o.cost, err = costOf(requests)
	return o, err
}

// uploadOver runs gcsup until the file is uploaded. It returns since when connections must be
// replaced.
func (k silence) uploadOver(s *benchrun.Suite, l *link, file string, connections int) (o outcome, since time.Time, err error) {
	flags := []string{"--parallel=off"}
	if connections > 1 {
		flags = []string{fmt.Sprint("--parallel=", connections), "--parallel-by=compose"}
	}
	flags = append(flags, "--verbose", "--progress=off", fmt.Sprint("--stall-timeout=", *stall))
	began := time.Now()
	if k.atStart {
		k.begin(l)
	}
	p, err := l.start(s, file, flags)
	if err != nil {
		return o, since, err
	}
	defer func() { p.kill() }() // p may be another process then
	since = time.Now()
	if !k.atStart {
		if err := l.waitForData(silentSize/3, p); err != nil {
			return o, since, err
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
				return o, since, err
			}
		case <-p.ended:
			if err := s.Interrupted(); err != nil {
				return o, since, err
			}
			if !p.mayContinue() {
				o.wall, o.output = time.Since(began), p.output.Bytes()
				return o, since, p.failure()
			}
			o.runs++
			if p, err = l.start(s, file, flags); err != nil {
				return o, since, err
			}
		}
	}
}

// waitForData waits until the client has sent n bytes.
func (l *link) waitForData(n int64, p *process) error {
	for {
		var sent int64
		for _, bytes := range l.Sent() {
			sent += bytes
		}
		if sent >= n {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("gcsup ended after %d bytes: %w", sent, p.failure())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
