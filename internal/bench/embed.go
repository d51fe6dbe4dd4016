package main

import (
	"flag"
	"fmt"
	"time"

	"gcsup/internal/benchrun"
)

// embedBenchmark measures what an upload costs a program that embeds package upload.
var embedBenchmark = benchrun.Benchmark{Name: "embed", Flags: embedFlags, Comparisons: compareEmbedded, Roles: roles}

var embed struct {
	memory           int64
	window           int
	streams, objects int
}

func embedFlags(f *flag.FlagSet) {
	f.Int64Var(&embed.memory, "memory", 0, "Options.Memory of package upload, in bytes")
	f.IntVar(&embed.window, "window", 0, "Options.Window of package upload, in bytes")
	f.IntVar(&embed.streams, "streams", 50, "streams at a time")
	f.IntVar(&embed.objects, "objects", 5000, "small objects")
}

func compareEmbedded(*benchrun.Suite) ([]benchrun.Comparison, error) {
	const delay = 20 * time.Millisecond // of a reply
	var (
		loopback = benchrun.Server{}
		slow     = benchrun.Server{Latency: delay}
		limited  = benchrun.Server{Latency: delay, TotalRate: 250 << 20} // 2 Gbit/s
		each     = benchrun.Server{Latency: delay, Rate: 20 << 20}
		fast     = benchrun.Server{Latency: delay, TotalRate: 1_250_000_000} // 10 Gbit/s
	)
	var comparisons []benchrun.Comparison
	for _, b := range []struct {
		name             string
		server           benchrun.Server
		uploads, workers int // workers upload at a time
		size             int64
		ways             []string
	}{
		{"stream", loopback, 200, 1, 10 << 20, []string{"bare PUT", "upload.Reader", "storage.Writer"}},
		{"streams", slow, embed.streams, embed.streams, 64 << 20, []string{"bare PUT", "upload.Reader", "storage.Writer"}},
		{"limited", limited, embed.streams, embed.streams, 16 << 20, []string{"bare PUT", "upload.Reader", "storage.Writer"}},
		{"fast", fast, embed.streams, embed.streams, 64 << 20, []string{"bare PUT", "upload.Reader", "storage.Writer"}},
		{"one", slow, 1, 1, 512 << 20, []string{"bare PUT", "upload.Reader", "Reader in parts", "auto Reader", "spooled Reader", "storage.Writer"}},
		{"parts", each, 1, 1, 1 << 30, []string{"upload.Reader", "Reader in parts", "auto Reader"}},
		{"near", loopback, 1, 1, 1 << 30, []string{"bare PUT", "upload.Reader", "Reader in parts", "auto Reader"}},
		{"spool", limited, 1, 1, 512 << 20, []string{"bare PUT", "upload.Reader", "spooled Reader"}},
		{"small", loopback, embed.objects, 32, 16 << 10, []string{"bare insert", "upload.Bytes", "upload.Reader", "storage.Writer"}},
	} {
		c := benchrun.Comparison{
			Name: b.name, Title: fmt.Sprintf("%d uploads of %d KiB, %d at a time, %v per reply", b.uploads, b.size>>10, b.workers, b.server.Latency),
			Figures: benchrun.Usual(float64(int64(b.uploads)*b.size)/(1<<20), "MiB"),
		}
		if b.server.Rate > 0 {
			c.Title += fmt.Sprintf(", each connection at %d MiB/s", b.server.Rate>>20)
		}
		if b.server.TotalRate > 0 {
			c.Title += fmt.Sprintf(", all at %d MiB/s", b.server.TotalRate>>20)
		}
		if b.size < 1<<20 {
			c.Figures = benchrun.Usual(float64(b.uploads), "upload")
		}
		c.Figures = append(c.Figures, allocated)
		for _, name := range b.ways {
			c.Ways = append(c.Ways, uploads(name, b.server, job{Do: name, Uploads: b.uploads, Workers: b.workers, Size: b.size}))
		}
		comparisons = append(comparisons, c)
	}
	return comparisons, nil
}
