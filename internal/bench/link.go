package main

import (
	"cmp"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	"gcsup/internal/badlink"
	"gcsup/internal/benchrun"
)

// linkBenchmark uploads over bad links. The packets are real, and the kernel's TCP is at both
// ends: see package badlink. It needs Linux and root.
var linkBenchmark = benchrun.Benchmark{Name: "link", Flags: linkFlags, Comparisons: compareLinks, Roles: roles}

var (
	linkConnections int
	outage, stall   time.Duration
)

func linkFlags(f *flag.FlagSet) {
	gcsupFlag(f)
	f.IntVar(&linkConnections, "connections", 8, "connections at a time, except with auto")
	f.DurationVar(&outage, "outage", 5*time.Minute, "how long the link is away")
	f.DurationVar(&stall, "stall", 2*time.Minute, "the stall timeout of gcsup, for a link or an address that goes away")
}

const mbit = 1_000_000 / 8 // bytes per second

// The links. Loss is that of each direction.
var (
	far   = badlink.Conditions{Delay: 75 * time.Millisecond, Loss: 0.01, Rate: 100 * mbit, Queue: 2 << 20}
	near  = badlink.Conditions{Delay: 10 * time.Millisecond, Loss: 0.001, Rate: 100 * mbit, Queue: 1 << 20}
	mixed = badlink.Conditions{Delay: 50 * time.Millisecond, Jitter: 20 * time.Millisecond, Reorder: 0.05, Late: 10 * time.Millisecond, Rate: 100 * mbit, Queue: 2 << 20}
)

// compareLinks compares gcsup with bare PUTs. cubic takes each loss for congestion, bbr does
// not. A connection with cubic therefore reaches about 0.12 MiB/s over the link far. The file
// has 8 MiB for each of 8 connections, because gcsup makes no smaller parts, and a run takes
// 80 s.
func compareLinks(s *benchrun.Suite) ([]benchrun.Comparison, error) {
	file := filepath.Join(s.Dir, "file")
	var comparisons []benchrun.Comparison
	for _, l := range []struct {
		name       string
		link       badlink.Conditions
		congestion string
		mib        int64 // of the file
		bare       int   // connections of the baseline; 0 means -connections
		ours       []string
	}{
		{"loss", far, "bbr", 256, 0, []string{"fixed", "compose", "auto", "off"}},
		{"loss-cubic", far, "cubic", 64, 0, []string{"fixed", "compose"}},
		{"loss-cubic-auto", far, "cubic", 256, 32, []string{"auto"}},
		{"reorder", mixed, "bbr", 160, 0, []string{"fixed", "compose"}},
		{"near", near, "bbr", 160, 0, []string{"auto", "off"}},
		{"near-cubic", near, "cubic", 160, 0, []string{"auto", "off"}},
	} {
		server := benchrun.Server{Link: l.link, Congestion: l.congestion}
		puts := cmp.Or(l.bare, linkConnections)
		compared := []benchrun.Way{uploads(fmt.Sprint(puts, " bare PUTs"), server, job{Do: "bare PUT", Path: file, Uploads: puts, Workers: puts})}
		parallel := fmt.Sprint("--parallel=", linkConnections)
		for _, name := range l.ours {
			compared = append(compared, map[string]benchrun.Way{
				"fixed":   cp(fmt.Sprint("gcsup ", linkConnections), server, file, "--json", "--quiet", parallel),
				"compose": cp(fmt.Sprint("gcsup ", linkConnections, " compose"), server, file, "--json", "--quiet", parallel, "--parallel-by=compose"),
				"auto":    cp("gcsup auto", server, file, "--json", "--quiet"),
				"off":     cp("gcsup off", server, file, "--json", "--quiet", "--parallel=off"),
			}[name])
		}
		comparisons = append(comparisons, benchrun.Comparison{
			Name: l.name, Title: fmt.Sprintf("%d MiB, %v round trip, up to %v jitter, %.3g %% loss, %.3g %% late by %v, %d Mbit/s, %s", l.mib,
				2*l.link.Delay, l.link.Jitter, 100*l.link.Loss, 100*l.link.Reorder, l.link.Late, l.link.Rate/mbit, l.congestion),
			Ways: compared, Figures: append(benchrun.Usual(float64(l.mib), "MiB"), connectionsUsed),
			Prepare: func(*benchrun.Suite, *benchrun.Process) error { return benchrun.Fill(file, l.mib<<20) },
		})
	}
	for _, k := range silences() {
		comparisons = append(comparisons, k.comparison(file))
	}
	return comparisons, nil
}
