// Command benchfleet uploads a tree of small files with gcsup cp -r and with a fleet of one worker.
// The figures of the fleet are those of gcsup-fleet submit and gcsup-fleet work together. The NATS
// server is another process, whose CPU time has a column of its own. Package benchrun describes how
// a comparison is declared.
//
//	go build -o bin/gcsup ./cmd/gcsup && cd fleet && go build -o ../bin/gcsup-fleet ./cmd/gcsup-fleet
//	go run ./internal/benchfleet fleet -gcsup ../bin/gcsup -fleet ../bin/gcsup-fleet
package main

import (
	"bytes"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gcsup/fleet/internal/natsserver"
	"gcsup/internal/benchrun"
)

var (
	gcsup, fleet string
	files, size  int
)

func main() {
	benchrun.Main(benchrun.Benchmark{Name: "fleet", Flags: flags, Comparisons: compare, Roles: map[string]func([]string) error{"nats": serveNATS, "fleet": uploadByFleet}})
}

func flags(f *flag.FlagSet) {
	f.StringVar(&gcsup, "gcsup", "gcsup", "`binary` of gcsup")
	f.StringVar(&fleet, "fleet", "gcsup-fleet", "`binary` of gcsup-fleet")
	f.IntVar(&files, "files", 100_000, "number of files")
	f.IntVar(&size, "size", 16<<10, "bytes of each file")
}

func compare(s *benchrun.Suite) ([]benchrun.Comparison, error) {
	tree := filepath.Join(s.Dir, "tree")
	if err := benchrun.FillTree(tree, files, size); err != nil {
		return nil, err
	}
	key := filepath.Join(s.Dir, "state.key")
	if err := os.WriteFile(key, bytes.Repeat([]byte{1}, 32), 0o600); err != nil {
		return nil, err
	}
	nats, err := s.StartRole("nats", filepath.Join(s.Dir, "nats"))
	if err != nil {
		return nil, err
	}
	emulator := benchrun.Server{}
	before := 0.0 // CPU time of the NATS server at the end of the last run
	return []benchrun.Comparison{{
		Name: "cp", Title: fmt.Sprintf("%d files of %d bytes, uploaded to the emulator", files, size),
		Ways: []benchrun.Way{
			{Name: "gcsup cp -r", Server: emulator, Command: func(string, int) *exec.Cmd {
				return exec.Command(gcsup, "cp", "-r", "--quiet", "--skip-identical=off", tree, "gs://bench/cp/")
			}},
			{Name: "gcsup-fleet", Server: emulator, Command: func(_ string, n int) *exec.Cmd {
				c := benchrun.Role("fleet", tree, fmt.Sprintf("run-%d", n), key)
				c.Env = []string{"GCSUP_NATS=" + nats.Endpoint}
				return c
			}},
		},
		Figures: append(benchrun.Usual(float64(files), "file"), benchrun.Figure{Title: "CPU s of NATS", Of: func(*benchrun.Run) (float64, error) {
			var now float64
			err := nats.Ask("", &now)
			spent := now - before
			before = now
			return spent, err
		}}),
	}}, nil
}

// uploadByFleet submits the tree to a queue of its own, and uploads it. Its arguments are the tree, a
// name that differs between the runs, and the file with the key of the state.
func uploadByFleet(args []string) error {
	tree, name, key := args[0], args[1], args[2]
	for _, command := range [][]string{
		{"submit", "-r", tree, "gs://bench/" + name + "/"},
		{"work", "--until-empty", "--log", "off", "--state", "gs://state/" + name, "--state-key-file", key},
	} {
		// The operating system adds the CPU time of these processes to that of this one.
		c := exec.Command(fleet, append(command, "--fleet", name)...)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w", command[0], err)
		}
	}
	return nil
}

// serveNATS runs a NATS server. It answers with its CPU time so far, in seconds.
func serveNATS(args []string) error {
	token := rand.Text()
	server, err := natsserver.Start(natsserver.Options{Dir: args[0], Port: -1, Token: token})
	if err != nil {
		return err
	}
	defer server.Close()
	return benchrun.Answer(fmt.Sprintf("nats://%s@%s", token, strings.TrimPrefix(server.URL(), "nats://")), func(string) any { return cpuSeconds() })
}
