// Command benchfleet uploads a tree of small files with gcsup cp -r and with a fleet of one worker.
// The figures of the fleet are those of gcsup-fleet submit and gcsup-fleet work together. The NATS
// server is another process, whose CPU time has a column of its own. Package benchrun describes how
// the ways are compared.
//
//	go build -o bin/gcsup ./cmd/gcsup && cd fleet && go build -o ../bin/gcsup-fleet ./cmd/gcsup-fleet
//	go run ./internal/benchfleet -gcsup ../bin/gcsup -fleet ../bin/gcsup-fleet
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gcsup/fleet/natsserver"
	"gcsup/internal/benchrun"
)

var (
	gcsup = flag.String("gcsup", "gcsup", "`binary` of gcsup")
	fleet = flag.String("fleet", "gcsup-fleet", "`binary` of gcsup-fleet")
	files = flag.Int("files", 100_000, "number of files")
	size  = flag.Int("size", 16<<10, "bytes of each file")
)

func main() {
	benchrun.Main(map[string]func([]string) error{"nats": serveNATS, "fleet": uploadByFleet}, compare)
}

func compare(s *benchrun.Suite) error {
	tree := filepath.Join(s.Dir, "tree")
	if err := benchrun.FillTree(tree, *files, *size); err != nil {
		return err
	}
	key := filepath.Join(s.Dir, "state.key")
	if err := os.WriteFile(key, bytes.Repeat([]byte{1}, 32), 0o600); err != nil {
		return err
	}
	nats, err := startNATS(filepath.Join(s.Dir, "nats"))
	if err != nil {
		return err
	}
	defer nats.stop()
	emulator := benchrun.Server{Emulator: true}
	return s.Compare(benchrun.Comparison{
		Name: "cp", Title: fmt.Sprintf("cp: %d files of %d bytes, uploaded to the emulator", *files, *size),
		Work: float64(*files), Unit: "file",
		Ways: []benchrun.Way{
			{Name: "gcsup cp -r", Server: emulator, Command: func(string, int) *exec.Cmd {
				return exec.Command(*gcsup, "cp", "-r", "--quiet", tree, "gs://bench/cp/")
			}},
			{Name: "gcsup-fleet", Server: emulator, Command: func(_ string, n int) *exec.Cmd {
				c := benchrun.Role("fleet", tree, fmt.Sprintf("run-%d", n), key)
				c.Env = []string{"GCSUP_NATS=" + nats.url}
				return c
			}},
		},
		Extra: func(benchrun.Run) (float64, error) { return nats.cpu() }, ExtraTitle: "CPU s of NATS",
	})
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
		c := exec.Command(*fleet, append(command, "--fleet", name)...)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s: %w", command[0], err)
		}
	}
	return nil
}

// serveNATS runs a NATS server. For each line of the standard input, it prints its CPU time so far, in
// seconds. It ends with the input.
func serveNATS(args []string) error {
	token := rand.Text()
	server, err := natsserver.Start(natsserver.Options{Dir: args[0], Port: -1, Token: token})
	if err != nil {
		return err
	}
	defer server.Close()
	fmt.Printf("nats://%s@%s\n", token, strings.TrimPrefix(server.URL(), "nats://"))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		fmt.Println(cpuSeconds())
	}
	return nil
}

// natsProcess is a running NATS server.
type natsProcess struct {
	url    string // with its token
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Reader
	before float64 // its CPU time at the last call of cpu
}

func startNATS(dir string) (*natsProcess, error) {
	p := &natsProcess{cmd: benchrun.Role("nats", dir)}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := fmt.Fscanln(p.out, &p.url); err != nil {
		p.stop()
		return nil, fmt.Errorf("NATS server: %w", err)
	}
	return p, nil
}

// cpu returns the CPU time of the server since the last call.
func (p *natsProcess) cpu() (float64, error) {
	if _, err := fmt.Fprintln(p.in); err != nil {
		return 0, err
	}
	var now float64
	if _, err := fmt.Fscanln(p.out, &now); err != nil {
		return 0, err
	}
	spent := now - p.before
	p.before = now
	return spent, nil
}

func (p *natsProcess) stop() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}
