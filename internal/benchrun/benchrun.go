// Package benchrun compares ways to do the same work. Each run of a way is a process of
// its own, and the server is another one. The ways run in turn, so that a change of the
// machine's speed affects all of them. The CPU time is that of the whole process, as
// the operating system reports it at its end.
//
// A benchmark is a program that calls [Main]. It starts itself for the server, and for
// the ways that are roles of it: see [Role].
package benchrun

import (
	"bytes"
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

// pause is the time before each run in which the machine should be idle.
const pause = 200 * time.Millisecond

// Main is the main function of a benchmark. It calls run with a directory that it
// removes afterwards, or the role that the command line names.
func Main(roles map[string]func(args []string) error, run func(s *Suite) error) {
	flag.Parse()
	var err error
	switch {
	case *role != "":
		err = runRole(roles)
	case flag.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case *runs < 1:
		err = fmt.Errorf("-runs %d: want at least 1", *runs)
	default:
		err = runSuite(run)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

func runRole(roles map[string]func(args []string) error) error {
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
	do, ok := roles[*role]
	if !ok {
		return fmt.Errorf("no role %q", *role)
	}
	return do(flag.Args())
}

func runSuite(run func(*Suite) error) error {
	// An interrupt ends the processes of the group. This one then removes the directory.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "gcsup-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &Suite{Dir: dir, ctx: ctx}
	if err := run(s); err != nil {
		return err
	}
	if !s.compared {
		return errors.New("-only and -ways leave nothing to compare")
	}
	return nil
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

// Suite runs comparisons.
type Suite struct {
	Dir      string // for files of the benchmark
	ctx      context.Context
	compared bool
}

// Comparison compares ways to do the same work. The first one is the baseline.
type Comparison struct {
	Name  string // for -only
	Title string
	Work  float64 // in a run, in units
	Unit  string
	Ways  []Way

	// Endpoint is that of a server that is running already, for all ways. Otherwise each way
	// gets its Server.
	Endpoint string

	// Prepare, if set, is called after a server starts.
	Prepare func(*Process) error

	// Extra, if set, returns another result of a run. ExtraTitle is its heading.
	Extra      func(Run) (float64, error)
	ExtraTitle string
}

// Way is one way to do the work.
type Way struct {
	Name     string
	Server   Server
	Optional bool // leave it out if its program is not installed

	// Command returns the process that does the work once. Its Env is added to that of
	// Environ. Number differs between the runs of a comparison.
	Command func(endpoint string, number int) *exec.Cmd
}

// Selects reports whether -only names a comparison, or none at all.
func (s *Suite) Selects(name string) bool {
	selected := named(*only, name)
	s.compared = s.compared || selected
	return selected
}

// Interrupted returns an error after an interrupt.
func (s *Suite) Interrupted() error { return context.Cause(s.ctx) }

// Run is a finished run.
type Run struct {
	Endpoint string
	Output   []byte
}

// Compare runs a comparison, and prints a table. It does nothing if the flags select no
// way except the baseline.
func (s *Suite) Compare(c Comparison) error {
	others := s.Select(c.Name, c.Ways[1:])
	if len(others) == 0 {
		return nil
	}
	c.Ways = append(c.Ways[:1:1], others...)
	servers := map[Server]*Process{}
	for _, w := range c.Ways {
		if servers[w.Server] != nil {
			continue
		}
		if c.Endpoint != "" {
			servers[w.Server] = &Process{Endpoint: c.Endpoint}
			continue
		}
		p, err := s.Start(w.Server)
		if err != nil {
			return err
		}
		defer p.Stop()
		servers[w.Server] = p
		if c.Prepare != nil {
			if err := c.Prepare(p); err != nil {
				return fmt.Errorf("%s: prepare: %w", c.Name, err)
			}
		}
	}
	results := make([]result, len(c.Ways))
	var idle idleness
	for number := range *runs + 1 {
		for i, w := range c.Ways {
			idle.wait(pause)
			m, err := s.measure(c, w, servers[w.Server], number)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", c.Name, w.Name, err)
			}
			if number > 0 { // the first run warms up the server and the page cache
				results[i].add(m)
			}
		}
	}
	fmt.Printf("\n%s; median (least-greatest) of %d runs\n%s%s\n", c.Title, *runs, c.table(results), idle.String())
	return nil
}

// Select returns the ways of a comparison that -ways names and that are installed. It
// returns none if -only does not name the comparison.
func (s *Suite) Select(name string, ways []Way) []Way {
	if !named(*only, name) {
		return nil
	}
	var selected []Way
	for _, w := range ways {
		if !named(*onlyWays, w.Name) {
			continue
		}
		if err := w.Command("", 0).Err; w.Optional && err != nil {
			fmt.Printf("%s is left out: %v\n", w.Name, err)
			continue
		}
		selected = append(selected, w)
	}
	s.compared = s.compared || len(selected) > 0
	return selected
}

// named reports whether a list is empty or has a name.
func named(list, name string) bool {
	return list == "" || slices.Contains(strings.Split(list, ","), name)
}

// measure makes one run.
func (s *Suite) measure(c Comparison, w Way, p *Process, number int) (measured, error) {
	if err := s.Interrupted(); err != nil {
		return measured{}, err
	}
	cmd := w.Command(p.Endpoint, number)
	cmd.Env = append(s.Environ(p), cmd.Env...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return measured{}, fmt.Errorf("%w\n%s", err, output.Bytes())
	}
	state := cmd.ProcessState
	m := measured{wall: time.Since(start).Seconds(), cpu: (state.UserTime() + state.SystemTime()).Seconds(), resident: residentMiB(state)}
	if c.Extra != nil {
		var err error
		if m.extra, err = c.Extra(Run{p.Endpoint, output.Bytes()}); err != nil {
			return measured{}, fmt.Errorf("%s: %w", c.ExtraTitle, err)
		}
	}
	return m, nil
}

// Environ returns the environment of a client of a server: gcsup, gcloud, curl, or any
// program in Go.
func (s *Suite) Environ(p *Process) []string {
	return append(os.Environ(), "STORAGE_EMULATOR_HOST="+p.Endpoint, "XDG_STATE_HOME="+s.Dir,
		"SSL_CERT_FILE="+p.authority, "CURL_CA_BUNDLE="+p.authority,
		"CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE="+p.Endpoint+"/", "CLOUDSDK_CONFIG="+filepath.Join(s.Dir, "gcloud"), "CLOUDSDK_CORE_PROJECT=p",
		"CLOUDSDK_AUTH_DISABLE_CREDENTIALS=1", "CLOUDSDK_CORE_DISABLE_PROMPTS=1", "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING=1",
		"CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK=1")
}

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
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
