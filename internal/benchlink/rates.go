package main

import (
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
	size       int64 // of the file, so that a run takes less than a minute
	auto       bool  // measure the choice of auto, too
}

const mbit = 1_000_000 / 8 // bytes per second

// Loss is that of each direction. cubic takes a lost packet for congestion, bbr does not.
var routes = []route{
	{"loss", badlink.Conditions{Delay: 75 * time.Millisecond, Loss: 0.01, Rate: 100 * mbit, Queue: 2 << 20}, "bbr", 256 << 20, true},
	{"loss-cubic", badlink.Conditions{Delay: 75 * time.Millisecond, Loss: 0.01, Rate: 100 * mbit, Queue: 2 << 20}, "cubic", 40 << 20, false},
	{"reorder", badlink.Conditions{Delay: 50 * time.Millisecond, Jitter: 20 * time.Millisecond, Reorder: 0.05, Late: 10 * time.Millisecond, Rate: 100 * mbit, Queue: 2 << 20}, "bbr", 256 << 20, false},
	{"near", badlink.Conditions{Delay: 10 * time.Millisecond, Loss: 0.001, Rate: 100 * mbit, Queue: 1 << 20}, "bbr", 256 << 20, true},
	{"near-cubic", badlink.Conditions{Delay: 10 * time.Millisecond, Loss: 0.001, Rate: 100 * mbit, Queue: 1 << 20}, "cubic", 256 << 20, true},
	{"far-cubic", badlink.Conditions{Delay: 75 * time.Millisecond, Loss: 0.01, Rate: 100 * mbit, Queue: 2 << 20}, "cubic", 160 << 20, true},
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
	n := *connections
	ways := []benchrun.Way{
		l.bare(file, n),
		l.gcsup(fmt.Sprint("gcsup ", n), file, fmt.Sprint("--parallel=", n)),
		l.gcsup(fmt.Sprint("gcsup ", n, " compose"), file, fmt.Sprint("--parallel=", n), "--parallel-by=compose"),
	}
	if r.auto {
		ways = append(ways, l.bare(file, 32), l.gcsup("gcsup off", file, "--parallel=off"), l.gcsup("gcsup auto", file))
	}
	c := r.conditions
	return s.Compare(benchrun.Comparison{
		Name: r.name, Work: float64(r.size) / (1 << 20), Unit: "MiB", Ways: ways, Endpoint: endpoint,
		Title: fmt.Sprintf("%s: %d MiB, %v round trip, up to %v jitter, %.3g %% loss, %.3g %% late by %v, %d Mbit/s, %s", r.name, r.size>>20,
			2*c.Delay, c.Jitter, 100*c.Loss, 100*c.Reorder, c.Late, c.Rate/mbit, r.congestion),
	})
}
