package main

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"gcsup/internal/badlink"
	"gcsup/internal/benchrun"
)

// route is a link over which gcsup is compared with bare PUTs.
type route struct {
	name       string
	conditions badlink.Conditions
	congestion string
	size       int64 // of the file
	bare       int   // connections of the baseline; 0 means -connections
	fixed      bool  // run gcsup with -connections, in both ways to join the parts
	auto       bool  // run gcsup auto
	off        bool  // run gcsup over one connection
}

const mbit = 1_000_000 / 8 // bytes per second

// The links of routes. Loss is that of each direction.
var (
	far   = badlink.Conditions{Delay: 75 * time.Millisecond, Loss: 0.01, Rate: 100 * mbit, Queue: 2 << 20}
	near  = badlink.Conditions{Delay: 10 * time.Millisecond, Loss: 0.001, Rate: 100 * mbit, Queue: 1 << 20}
	mixed = badlink.Conditions{Delay: 50 * time.Millisecond, Jitter: 20 * time.Millisecond, Reorder: 0.05, Late: 10 * time.Millisecond, Rate: 100 * mbit, Queue: 2 << 20}
)

// cubic takes each loss for congestion, bbr does not. A connection with cubic therefore
// reaches about 0.12 MiB/s over the link far. The file has 8 MiB for each of 8 connections,
// because gcsup makes no smaller parts, and a run takes 80 s.
var routes = []route{
	{name: "loss", conditions: far, congestion: "bbr", size: 256 << 20, fixed: true, auto: true, off: true},
	{name: "loss-cubic", conditions: far, congestion: "cubic", size: 64 << 20, fixed: true},
	{name: "loss-cubic-auto", conditions: far, congestion: "cubic", size: 256 << 20, bare: 32, auto: true},
	{name: "reorder", conditions: mixed, congestion: "bbr", size: 160 << 20, fixed: true},
	{name: "near", conditions: near, congestion: "bbr", size: 160 << 20, auto: true, off: true},
	{name: "near-cubic", conditions: near, congestion: "cubic", size: 160 << 20, auto: true, off: true},
}

// rates compares the ways over each route.
func rates(s *benchrun.Suite) error {
	for _, r := range routes {
		if !s.Selects(r.name) {
			continue
		}
		if err := r.compare(s); err != nil {
			return err
		}
	}
	return nil
}

func (r route) compare(s *benchrun.Suite) (err error) {
	file := filepath.Join(s.Dir, r.name)
	if err := benchrun.Fill(file, r.size); err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // gcsup would wait until the file is that old
	l, err := newLink(s, r.conditions, r.congestion)
	if err != nil {
		return err
	}
	defer func() {
		_, stopErr := l.stop()
		err = errors.Join(err, stopErr)
	}()
	ways := []benchrun.Way{l.bare(file, cmp.Or(r.bare, *connections))}
	if r.fixed {
		n := *connections
		ways = append(ways, l.gcsup(fmt.Sprint("gcsup ", n), file, fmt.Sprint("--parallel=", n)),
			l.gcsup(fmt.Sprint("gcsup ", n, " compose"), file, fmt.Sprint("--parallel=", n), "--parallel-by=compose"))
	}
	if r.auto {
		ways = append(ways, l.gcsup("gcsup auto", file))
	}
	if r.off {
		ways = append(ways, l.gcsup("gcsup off", file, "--parallel=off"))
	}
	c := r.conditions
	return s.Compare(benchrun.Comparison{
		Name: r.name, Work: float64(r.size) / (1 << 20), Unit: "MiB", Ways: ways, Endpoint: endpoint, ExtraTitle: "connections", Extra: connectionsOf,
		Title: fmt.Sprintf("%s: %d MiB, %v round trip, up to %v jitter, %.3g %% loss, %.3g %% late by %v, %d Mbit/s, %s", r.name, r.size>>20,
			2*c.Delay, c.Jitter, 100*c.Loss, 100*c.Reorder, c.Late, c.Rate/mbit, r.congestion),
	})
}
