// Package benchrun compares ways to do the same work. Each run of a way is a process of
// its own, and the server is another one. The ways run in turn, so that a change of the
// machine's speed affects all of them. The CPU time is that of the whole process, as
// the operating system reports it at its end.
//
// A program calls [Main] with its benchmarks. A [Benchmark] is a list of values of
// [Comparison]: which programs run, how each is started, and which figures are printed. The
// program starts itself for the server, and for the ways that are roles of it: see [Role].
package benchrun

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

var (
	runs     = flag.Int("runs", 9, "how often each way runs, after one run that is not counted")
	only     = flag.String("only", "", "comma-separated `names` of the comparisons to run; empty runs all")
	onlyWays = flag.String("ways", "", "comma-separated `names` of the ways to compare with the first one; empty means all that are installed")
	profile  = flag.String("cpuprofile", "", "write the CPU profiles of the server and of each run of a role to `directory`")
	role     = flag.String("role", "", "run this `role`; the benchmark starts itself with it")
)

// Benchmark has comparisons that share flags. Its name is the first argument of the
// program.
type Benchmark struct {
	Name        string
	Flags       func(*flag.FlagSet) // defines flags besides those of this package
	Comparisons func(*Suite) ([]Comparison, error)
	Roles       map[string]func(args []string) error
}

// Main is the main function of a program with benchmarks.
func Main(benchmarks ...Benchmark) {
	var names []string
	for _, b := range benchmarks {
		if names = append(names, b.Name); len(os.Args) > 1 && os.Args[1] == b.Name {
			if err := b.run(os.Args[2:]); err != nil {
				fmt.Fprintf(os.Stderr, "%s %s: %v\n", filepath.Base(os.Args[0]), b.Name, err)
				os.Exit(1)
			}
			return
		}
	}
	fmt.Fprintf(os.Stderr, "usage: %s NAME [flags], where NAME is one of: %s\n", filepath.Base(os.Args[0]), strings.Join(names, ", "))
	os.Exit(2)
}

func (b Benchmark) run(args []string) error {
	b.Flags(flag.CommandLine)
	if err := flag.CommandLine.Parse(args); err != nil {
		return err
	}
	switch {
	case *role != "":
		return b.runRole()
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case *runs < 1:
		return fmt.Errorf("-runs %d: want at least 1", *runs)
	}
	return b.compare()
}

// Role returns the command that runs a role of this program, with the flags of this
// process.
func Role(name string, args ...string) *exec.Cmd {
	self, err := os.Executable()
	c := exec.Command(self, slices.Concat(os.Args[1:], []string{"-role", name, "--"}, args)...)
	if err != nil {
		c.Err = err
	}
	return c
}

func (b Benchmark) runRole() error {
	if *profile != "" {
		f, err := os.Create(filepath.Join(*profile, fmt.Sprintf("%s.%d.prof", *role, os.Getpid())))
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	if *role == serverRole {
		return serve(flag.Args())
	}
	do, ok := b.Roles[*role]
	if !ok {
		return fmt.Errorf("no role %q", *role)
	}
	return do(flag.Args())
}

// Suite runs comparisons.
type Suite struct {
	Dir      string // for files of the benchmark, which are removed at its end
	ctx      context.Context
	roles    []*Process // of StartRole
	compared bool
	failures []error
}

func (b Benchmark) compare() error {
	// An interrupt ends the processes. This one then removes the directory.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "gcsup-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &Suite{Dir: dir, ctx: ctx}
	defer func() {
		for _, p := range s.roles {
			p.stop()
		}
	}()
	comparisons, err := b.Comparisons(s)
	if err != nil {
		return err
	}
	for _, c := range comparisons {
		if err := s.compare(c); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	if !s.compared {
		return errors.New("-only and -ways leave nothing to compare")
	}
	return errors.Join(s.failures...)
}

// Fail reports a run with a bad result. The benchmark continues, and fails at its end.
func (s *Suite) Fail(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	fmt.Println("FAILED:", err)
	s.failures = append(s.failures, err)
}

// age is how old a file must be: gcsup waits until then before it uploads the file, and a
// second run trusts only modification times that are so old.
const age = 2 * time.Second

// FillTree makes a tree of small files. Each directory has 100 files with different bytes.
func FillTree(tree string, files, size int) error {
	random := rand.NewChaCha8([32]byte{1})
	data := make([]byte, size)
	_, _ = random.Read(data)
	for i := range files {
		path := filepath.Join(tree, fmt.Sprintf("d%04d", i/100), fmt.Sprintf("f%06d", i))
		if i%100 == 0 {
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				return err
			}
		}
		if len(data) >= 8 {
			binary.LittleEndian.PutUint64(data, uint64(i))
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			return err
		}
	}
	time.Sleep(age)
	return nil
}

// Fill writes a file of n random bytes. It syncs the file, because gcsup would wait for
// the disk before its first upload.
func Fill(path string, n int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{1}), n)
	err = errors.Join(err, f.Sync(), f.Close())
	time.Sleep(age)
	return err
}
