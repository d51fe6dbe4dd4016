package main

import (
	"cmp"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
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
	clean = badlink.Conditions{Delay: 150 * time.Millisecond, Rate: 100 * mbit, Queue: 4 << 20}
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
		{"loss-cubic-auto", far, "cubic", 256, 32, []string{"auto", "compose"}},
		{"reorder", mixed, "bbr", 160, 0, []string{"fixed", "compose"}},
		{"near", near, "bbr", 160, 0, []string{"auto", "off"}},
		{"near-cubic", near, "cubic", 160, 0, []string{"auto", "off"}},
	} {
		server := benchrun.Server{Link: l.link, Congestion: l.congestion}
		puts := cmp.Or(l.bare, linkConnections)
		compared := []benchrun.Way{uploads(fmt.Sprint(puts, " bare PUTs"), server, job{Do: "bare PUT", Path: file, Uploads: puts, Workers: puts})}
		parallel := fmt.Sprint("--parallel=", puts)
		for _, name := range l.ours {
			compared = append(compared, map[string]benchrun.Way{
				"fixed":   cp(fmt.Sprint("gcsup ", puts), server, file, "--json", "--quiet", parallel),
				"compose": cp(fmt.Sprint("gcsup ", puts, " compose"), server, file, "--json", "--quiet", parallel, "--parallel-by=compose"),
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
	comparisons = append(comparisons, congestionControls(file)...)
	for _, k := range silences() {
		comparisons = append(comparisons, k.comparison(file))
	}
	return comparisons, nil
}

// congestionControls compares --congestion-control=bbr, which auto chooses, with cubic: one connection, auto
// and a stream. Then what one connection with bbr takes from eight with cubic.
func congestionControls(file string) []benchrun.Comparison {
	var comparisons []benchrun.Comparison
	for _, l := range []struct {
		name string
		link badlink.Conditions
		mib  int64
	}{{"congestion-near", near, 160}, {"congestion-loss", far, 64}, {"congestion-clean", clean, 160}} {
		server := benchrun.Server{Link: l.link, Congestion: benchrun.Chosen}
		c := benchrun.Comparison{
			Name: l.name, Title: fmt.Sprintf("congestion control: %d MiB, %v round trip, %.3g %% loss, %d Mbit/s", l.mib, 2*l.link.Delay, 100*l.link.Loss, l.link.Rate/mbit),
			Figures: append(benchrun.Usual(float64(l.mib), "MiB"), connectionsUsed),
			Prepare: func(*benchrun.Suite, *benchrun.Process) error { return benchrun.Fill(file, l.mib<<20) },
		}
		for _, control := range []string{"cubic", "bbr"} {
			flag := "--congestion-control=" + control
			c.Ways = append(c.Ways,
				cp("one connection, "+control, server, file, "--json", "--quiet", "--parallel=off", flag),
				cp("--parallel=auto, "+control, server, file, "--json", "--quiet", flag),
				streamed("a stream, "+control, server, file, "--json", "--quiet", flag))
		}
		comparisons = append(comparisons, c)
	}
	for _, queue := range []int64{1 << 20, 128 << 10} {
		fair := benchrun.Comparison{
			Name: fmt.Sprint("congestion-fair-", queue>>10), Title: fmt.Sprintf("eight PUTs with cubic beside one more connection, 64 MiB, 20 ms round trip, 100 Mbit/s, a queue of %d KiB", queue>>10),
			Figures: benchrun.Usual(64, "MiB"),
			Prepare: func(*benchrun.Suite, *benchrun.Process) error { return benchrun.Fill(file, 64<<20) },
		}
		shared := badlink.Conditions{Delay: 10 * time.Millisecond, Rate: 100 * mbit, Queue: queue}
		for _, control := range []string{"cubic", "bbr"} {
			fair.Ways = append(fair.Ways, uploads("beside "+control, benchrun.Server{Link: shared, Congestion: benchrun.Chosen}, job{Do: "cubic PUT", Path: file, Uploads: 8, Workers: 8, Beside: control}))
		}
		comparisons = append(comparisons, fair)
	}
	return comparisons
}

// streamed is gcsup cp of standard input.
func streamed(name string, server benchrun.Server, file string, flags ...string) benchrun.Way {
	return benchrun.Way{Name: name, Server: server, Command: func(_ string, n int) *exec.Cmd {
		return exec.Command("sh", slices.Concat([]string{"-c", `file=$1; shift; cat "$file" | "$@"`, "sh", file, gcsup, "cp"}, flags, []string{"-", fmt.Sprint("gs://bench/o", n)})...)
	}}
}
