// Command benchlink uploads over bad links: with packet loss, reordering and long round
// trips, with an address that drops all packets, and with an outage after which the client
// has another address. The packets are real, and the kernel's TCP is at both ends: see
// package badlink. It needs Linux and root.
//
// Package benchrun describes how the ways of a comparison are compared.
//
//	go build -o bin/gcsup ./cmd/gcsup && go run ./internal/benchlink -gcsup bin/gcsup -runs 3
package main

import (
	"errors"
	"flag"
	"fmt"
	"time"

	"gcsup/internal/badlink"
	"gcsup/internal/benchrun"
)

var (
	gcsup       = flag.String("gcsup", "gcsup", "`binary` of gcsup")
	connections = flag.Int("connections", 8, "connections at a time, except with auto")
	outage      = flag.Duration("outage", 5*time.Minute, "how long the link is away")
	stall       = flag.Duration("stall", 2*time.Minute, "the stall timeout of gcsup, for a link or an address that goes away")
)

func main() {
	benchrun.Main(map[string]func([]string) error{
		"bare":   barePuts,
		"inside": func(args []string) error { return badlink.Exec(args[0], args[1], args[2:]) },
	}, compare)
}

func compare(s *benchrun.Suite) error {
	probe, err := badlink.Open(badlink.Conditions{}, "cubic")
	if err != nil {
		return fmt.Errorf("this benchmark cannot run here, it needs Linux and root: %w", err)
	}
	if err := probe.Close(); err != nil {
		return err
	}
	return errors.Join(rates(s), silences(s))
}
