// Command mutate changes one place of the code at a time, and runs tests with each change:
//
//	go run ./internal/mutate [-n N] [-from N] [-seed N] [-tests DIRECTORIES] DIRECTORY...
//
// A directory is a package of the current module, such as upload/internal/parts. A changed program is called a mutant. The
// tests kill it if they fail, or do not end in time. Mutants that do not compile do not count. The files of the
// tree are not changed.
//
// own.sh measures the own tests of each package, with another program.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	n := flag.Int("n", 200, "the number of mutants")
	from := flag.Int("from", 1, "the first mutant, to continue an interrupted run")
	seed := flag.Uint64("seed", 1, "selects the mutants")
	tests := flag.String("tests", "session internal/decide upload", "the packages whose tests run, in this order")
	flag.Parse()
	if err := run(flag.Args(), strings.Fields(*tests), *seed, *from, *n); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// run prints the results of n mutants.
func run(dirs, tests []string, seed uint64, from, n int) error {
	var all []mutant
	for _, dir := range dirs {
		found, err := find(dir)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	shuffle(all, seed)

	tmp, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	s := suite{tests: tests, tmp: tmp, limit: time.Hour}
	began := time.Now()
	if r, err := s.test(mutant{}); err != nil {
		return err
	} else if r != survived {
		return fmt.Errorf("the tests of the unchanged program: %s", r)
	}
	alone := time.Since(began)
	s.limit = 10*time.Second + 3*alone // enough for other work on the machine
	fmt.Printf("%d mutants in all; without one, the tests take %s\n", len(all), alone.Round(time.Second))

	count := map[result]int{}
	for i := from; i <= len(all) && count[killed]+count[late]+count[survived] < n; i++ {
		r, err := s.test(all[i-1])
		if err != nil {
			return err
		}
		count[r]++
		fmt.Printf("%4d %-16s %s\n", i, r, all[i-1])
	}
	dead := count[killed] + count[late]
	fmt.Printf("%d of %d mutants killed, %d of them because the tests did not end in time\n", dead, dead+count[survived], count[late])
	return nil
}
