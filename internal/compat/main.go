// Command compat has the programs that the scripts of this directory run: compat PROGRAM ARGUMENT...
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"gcsup/internal/compat/filters"
	"gcsup/internal/compat/front"
	"gcsup/internal/compat/live"
	"gcsup/internal/compat/official"
	"gcsup/internal/compat/operations"
	"gcsup/internal/compat/suites"
)

// programs return their exit codes.
var programs = map[string]func(args []string) int{
	"filters":    filters.Main,
	"front":      front.Main,
	"live":       live.Main,
	"official":   official.Main,
	"operations": operations.Main,
	"suites":     suites.Main,
}

func main() {
	if len(os.Args) > 1 {
		if program := programs[os.Args[1]]; program != nil {
			os.Exit(program(os.Args[2:]))
		}
	}
	fmt.Fprintf(os.Stderr, "compat: want one of %q as the first argument\n", slices.Sorted(maps.Keys(programs)))
	os.Exit(64)
}
