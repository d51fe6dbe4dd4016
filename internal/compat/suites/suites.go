// Package suites compares the results of another project's test suite on the emulator with the
// list of the failures that are expected.
//
//	suites -format go|junit|mocha -list FILE RESULTS
//
// It prints the differences and a summary. The exit code is 1 if a test fails that is not in the
// list, or if a test of the list passes or did not run. With -record it writes the summary to
// results.json, from which "suites -table" writes the table in docs/emulator/emulator.md.
package suites

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Main is the program. It returns its exit code.
func Main(args []string) int {
	if err := run(args, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		return 1
	}
	return 0
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("suites", flag.ContinueOnError)
	format := flags.String("format", "go", "the `FORMAT` of the results: go (of go test -json), junit (of pytest) or mocha (of its reporter json)")
	list := flags.String("list", "", "the `FILE` of the expected failures")
	client := flags.String("record", "", "the `CLIENT` whose results are recorded")
	version := flags.String("version", "", "the version of the recorded client")
	recorded := flags.String("results", "internal/compat/results.json", "the `FILE` of the recorded results")
	page := flags.String("table", "", "write the table of the recorded results to this `FILE`, and compare nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *page != "" {
		return writeTable(*recorded, *page)
	}
	if *list == "" { // a client without a suite: its script has checked it
		if *client == "" {
			return errors.New("give -list FILE and a file of results, or -record CLIENT, or -table FILE")
		}
		return record(*recorded, *client, row{Version: *version, Date: time.Now().UTC().Format(time.DateOnly)})
	}
	if flags.NArg() != 1 {
		return errors.New("give one file of results")
	}
	results, err := readResults(*format, flags.Arg(0))
	if err != nil {
		return fmt.Errorf("read the results: %w", err)
	}
	text, err := os.ReadFile(*list)
	if err != nil {
		return err
	}
	expected, err := parseExpected(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", *list, err)
	}
	differences := compare(results, expected)
	for _, d := range differences {
		fmt.Fprintln(out, d)
	}
	sum := summarize(results)
	fmt.Fprintf(out, "%d tests pass, %d fail, %d are skipped; %d differences from %s\n", sum.Passed, sum.Failed, sum.Skipped, len(differences), *list)
	if len(differences) > 0 {
		return fmt.Errorf("the failures are not those of %s: fix the emulator, or change the list and give the reason", *list)
	}
	if *client == "" {
		return nil
	}
	sum.Version, sum.Date = strings.TrimSpace(*version), time.Now().UTC().Format(time.DateOnly)
	return record(*recorded, *client, sum)
}
