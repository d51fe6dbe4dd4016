// Command bench compares gcsup and package upload with other ways to upload: bare requests
// of net/http, the official library, and other programs if they are installed. Its first
// argument names a benchmark:
//
//   - file: one large file
//   - many: a tree of small files
//   - embed: a program that embeds package upload
//   - link: links with packet loss, long round trips and outages
//
// Each has a table of comparisons in the file of its name. Package benchrun describes how a
// comparison is declared, and how it runs.
//
//	go build -o bin/gcsup ./cmd/gcsup && go run ./internal/bench file -gcsup bin/gcsup
package main

import (
	"flag"

	"gcsup/internal/benchrun"
)

// gcsup is the program of the flag -gcsup.
var gcsup string

func gcsupFlag(f *flag.FlagSet) { f.StringVar(&gcsup, "gcsup", "gcsup", "`binary` of gcsup") }

func main() { benchrun.Main(fileBenchmark, manyBenchmark, embedBenchmark, linkBenchmark) }
