// Command benchparallel uploads one large file to the emulator: with gcsup over one
// connection, in parts and with --parallel=auto, and with gcloud if it is installed.
// Each runs in turn as a process of its own. So does the emulator. The connections
// are those of loopback, with and without a limit for each. It prints the time, the
// CPU time, and the requests, as ratios to one connection. Then it prints what each
// way leaves after SIGKILL and a second run.
//
//	go build -o /tmp/gcsup ./cmd/gcsup && go run ./internal/benchparallel -gcsup /tmp/gcsup
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

var (
	loops   = flag.Bool("loopback", false, "measure over loopback only")
	gcsup   = flag.String("gcsup", "gcsup", "`binary` of gcsup")
	size    = flag.Int64("size", 1<<30, "bytes of the file")
	rounds  = flag.Int("rounds", 3, "how often each way runs; the median counts")
	rate    = flag.Int64("rate", 20<<20, "bytes per second of each connection of the limited link")
	latency = flag.Duration("latency", 10*time.Millisecond, "delay of each reply of the limited link")
	only    = flag.String("only", "", "comma-separated `names` of the ways to run; empty runs all that are installed")
)

func main() {
	flag.Parse()
	if err := compare(); err != nil {
		fmt.Fprintln(os.Stderr, "benchparallel:", err)
		os.Exit(1)
	}
}

// way is one program that uploads the file.
type way struct {
	name    string
	md5     bool          // it compares the MD5 of each object; the emulator then needs more time
	starts  time.Duration // how long it takes to begin
	command func(file, object, endpoint string) *exec.Cmd
}

// outcome has the results of a way over one link.
type outcome struct {
	way       *way
	wall, cpu []time.Duration
	requests  int
}

// link is a network between the programs and the emulator.
type link struct {
	name  string
	flags []string
}

func ways(dir string) []*way {
	ours := func(name string, flags ...string) *way {
		return &way{name: name, command: func(file, object, endpoint string) *exec.Cmd {
			c := exec.Command(*gcsup, slices.Concat([]string{"cp", "--quiet"}, flags, []string{file, "gs://bench/" + object})...)
			c.Env = append(os.Environ(), "STORAGE_EMULATOR_HOST="+endpoint, "XDG_STATE_HOME="+dir)
			return c
		}}
	}
	gcloud := func(name, composite string) *way {
		return &way{name: name, md5: true, starts: 1500 * time.Millisecond, command: func(file, object, endpoint string) *exec.Cmd {
			c := exec.Command("gcloud", "storage", "cp", file, "gs://bench/"+object)
			c.Env = append(os.Environ(), "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE="+endpoint+"/", "CLOUDSDK_CORE_PROJECT=p", "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING=1",
				"CLOUDSDK_AUTH_DISABLE_CREDENTIALS=1", "CLOUDSDK_CONFIG="+dir+"/gcloud", "CLOUDSDK_CORE_DISABLE_PROMPTS=1",
				"CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK=1", "CLOUDSDK_STORAGE_PARALLEL_COMPOSITE_UPLOAD_ENABLED="+composite)
			return c
		}}
	}
	all := []*way{
		ours("off", "--parallel=off"), ours("auto"),
		ours("8 multipart", "--parallel=8", "--parallel-by=multipart"), ours("8 compose", "--parallel=8", "--parallel-by=compose"),
		gcloud("gcloud", "False"), gcloud("gcloud composite", "True"),
	}
	return slices.DeleteFunc(all, func(w *way) bool {
		if *only != "" && w.name != "off" && !slices.Contains(strings.Split(*only, ","), w.name) {
			return true
		}
		_, err := exec.LookPath(w.command("", "", "").Path)
		return err != nil
	})
}

func compare() error {
	dir, err := os.MkdirTemp("", "benchparallel")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "file")
	if err := fill(file, *size); err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // an upload would wait until the file is that old
	all := ways(dir)
	links := []link{
		{"loopback", nil},
		{fmt.Sprintf("%d MiB/s per connection, %v per reply", *rate>>20, *latency), []string{"--rate", fmt.Sprint(*rate), "--latency", latency.String()}},
	}
	if *loops {
		links = links[:1]
	}
	for _, l := range links {
		var outcomes []*outcome
		for _, w := range all {
			outcomes = append(outcomes, &outcome{way: w})
		}
		for round := range *rounds {
			for _, o := range outcomes {
				if err := o.run(l, file, fmt.Sprintf("o%d", round)); err != nil {
					return err
				}
			}
		}
		if err := report(l, outcomes); err != nil {
			return err
		}
	}
	if *loops {
		return nil
	}
	return killed(all, file)
}

// run uploads the file once.
func (o *outcome) run(l link, file, object string) error {
	e, err := startEmulator(o.way.md5, l.flags...)
	if err != nil {
		return err
	}
	defer e.stop()
	c := o.way.command(file, object, e.endpoint)
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	start := time.Now()
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", o.way.name, err, output.Bytes())
	}
	o.wall = append(o.wall, time.Since(start))
	o.cpu = append(o.cpu, c.ProcessState.UserTime()+c.ProcessState.SystemTime())
	o.requests, err = e.requests()
	return err
}

func report(l link, outcomes []*outcome) error {
	fmt.Printf("\n%s: %d MiB, median of %d\n", l.name, *size>>20, *rounds)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "way\ttime s\tCPU s/GiB\trequests\ttime, of one connection's\tCPU, of one connection's\t")
	base := outcomes[0]
	for _, o := range outcomes {
		wall, cpu := median(o.wall), median(o.cpu)
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%d\t%.3f\t%.2f\t\n", o.way.name, wall.Seconds(), cpu.Seconds()*(1<<30)/float64(*size), o.requests,
			wall.Seconds()/median(base.wall).Seconds(), cpu.Seconds()/median(base.cpu).Seconds())
	}
	return t.Flush()
}

// killed kills each way in the middle of an upload over a limited link, runs it
// again, and prints how many bytes both runs sent, and how many other objects are
// left.
func killed(all []*way, file string) error {
	fmt.Printf("\nSIGKILL after %v over a link of %d MiB/s, and a second run\n", killAfter().Round(100*time.Millisecond), 8**rate>>20)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "way\tMiB received\tsecond run\tobjects left\t")
	for _, w := range all {
		if err := killOne(t, w, file); err != nil {
			return err
		}
	}
	return t.Flush()
}

// killAfter returns the time in which the link of killOne carries half of the file.
func killAfter() time.Duration {
	return time.Duration(float64(*size) / 2 / float64(8**rate) * float64(time.Second))
}

func killOne(out io.Writer, w *way, file string) error {
	e, err := startEmulator(w.md5, "--total-rate", fmt.Sprint(8**rate), "--latency", latency.String())
	if err != nil {
		return err
	}
	defer e.stop()
	first := w.command(file, "killed", e.endpoint)
	if err := first.Start(); err != nil {
		return err
	}
	time.Sleep(w.starts + killAfter())
	_ = first.Process.Kill()
	_ = first.Wait()
	again, result := w.command(file, "killed", e.endpoint), "ok"
	if err := again.Run(); err != nil {
		result = err.Error()
	}
	n, err := e.received()
	if err != nil {
		return err
	}
	left, err := e.objects()
	if err != nil {
		return err
	}
	left = slices.DeleteFunc(left, func(name string) bool { return name == "killed" })
	_, err = fmt.Fprintf(out, "%s\t%d\t%s\t%d\t\n", w.name, n>>20, result, len(left))
	return err
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

// fill makes a file of random bytes.
func fill(path string, n int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{1}), n)
	return err
}

// emulator is an emulator process that discards the bytes that it receives.
type emulator struct {
	endpoint string
	c        *exec.Cmd
}

func startEmulator(md5 bool, flags ...string) (*emulator, error) {
	args := []string{"emulator", "--addr", "127.0.0.1:0", "--create-buckets", "--discard", fmt.Sprintf("--no-md5=%v", !md5)}
	e := &emulator{c: exec.Command(*gcsup, append(args, flags...)...)}
	out, err := e.c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	e.c.Stderr = os.Stderr
	if err := e.c.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var ok bool
	if _, e.endpoint, ok = strings.Cut(strings.TrimSpace(line), "="); err != nil || !ok {
		e.stop()
		return nil, fmt.Errorf("the emulator printed %q: %v", line, err)
	}
	return e, nil
}

func (e *emulator) stop() {
	_ = e.c.Process.Signal(os.Interrupt)
	_ = e.c.Wait()
}

func (e *emulator) get(path string, v any) error {
	resp, err := http.Get(e.endpoint + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(v)
}

// stats has the emulator's counters.
type stats struct {
	Ops      map[string]int
	Received int64
}

// requests returns the number of requests so far.
func (e *emulator) requests() (n int, err error) {
	var s stats
	err = e.get("/_fakegcs/stats", &s)
	for _, count := range s.Ops {
		n += count
	}
	return n, err
}

// received returns the number of object bytes so far.
func (e *emulator) received() (int64, error) {
	var s stats
	err := e.get("/_fakegcs/stats", &s)
	return s.Received, err
}

// objects returns the names of all objects.
func (e *emulator) objects() (names []string, err error) {
	var list struct{ Items []struct{ Name string } }
	err = e.get("/storage/v1/b/bench/o", &list)
	for _, o := range list.Items {
		names = append(names, o.Name)
	}
	return names, err
}
