// Command benchembed measures what an upload costs a program that embeds package
// upload: streams of 10 MiB, many streams at a time, one stream with slow replies,
// and small objects from memory. Beside each it runs a bare request of net/http and
// the official library's Writer, in turn. It prints the CPU time of this process,
// the bytes that it allocates, its heap, and the ratios. The emulator runs in a
// process of its own.
//
//	go run ./internal/benchembed
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"cloud.google.com/go/storage"
	"google.golang.org/api/option"

	"gcsup/fakegcs"
	"gcsup/upload"
)

var (
	rounds  = flag.Int("rounds", 3, "how often each way runs; the median counts")
	only    = flag.String("only", "", "comma-separated `names` of the benchmarks to run; empty runs all")
	skip    = flag.String("skip", "", "comma-separated `names` of the ways to leave out")
	profile = flag.String("cpuprofile", "", "write CPU profiles to `directory`, one for each way")
	memory  = flag.Int64("memory", 0, "Options.Memory of package upload, in bytes")
	serve   = flag.Duration("serve", -1, "run the emulator with this delay of each `reply`")
	limit   = flag.Int64("limit", 0, "bytes per second of the emulator, of all connections together")
	streams = flag.Int("streams", 50, "streams at a time")
)

func main() {
	flag.Parse()
	run := compare
	if *serve >= 0 {
		run = emulate
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "benchembed:", err)
		os.Exit(1)
	}
}

// link configures an emulator, which delays each reply and limits the bytes per
// second.
type link struct {
	latency time.Duration
	limit   int64
}

var (
	loopback = link{}
	slow     = link{latency: 20 * time.Millisecond}
	limited  = link{latency: 20 * time.Millisecond, limit: 250 << 20}     // 2 Gbit/s
	fast     = link{latency: 20 * time.Millisecond, limit: 1_250_000_000} // 10 Gbit/s
)

// benchmark is one kind of upload, made in several ways. The others are compared with
// the first way.
type benchmark struct {
	name    string
	title   string
	link    link
	uploads int   // of each way in a round
	workers int   // uploads at a time
	size    int64 // of each
	ways    []way
}

// way is one way to upload an object of the size of the benchmark.
type way struct {
	name   string
	upload func(ctx context.Context, c *clients, name string, size int64) error
}

var benchmarks = []benchmark{
	{"stream", "streams of 10 MiB, one after the other", loopback, 30, 1, 10 << 20, []way{
		{"storage.Writer", writer}, {"upload.Reader", reader}, {"bare PUT", barePut},
	}},
	{"streams", "streams of 64 MiB at once, 20 ms per reply", slow, 0, 0, 64 << 20, []way{
		{"bare PUT", barePut}, {"upload.Reader", reader}, {"storage.Writer", writer},
	}},
	{"limited", "streams of 16 MiB at once, 20 ms per reply, all at 250 MiB/s", limited, 0, 0, 16 << 20, []way{
		{"bare PUT", barePut}, {"upload.Reader", reader}, {"storage.Writer", writer},
	}},
	{"fast", "streams of 64 MiB at once, 20 ms per reply, all at 1,192 MiB/s", fast, 0, 0, 64 << 20, []way{
		{"bare PUT", barePut}, {"upload.Reader", reader}, {"storage.Writer", writer},
	}},
	{"one", "one stream of 512 MiB, 20 ms per reply", slow, 1, 1, 512 << 20, []way{
		{"bare PUT", barePut}, {"upload.Reader", reader}, {"storage.Writer", writer},
	}},
	{"small", "5,000 objects of 16 KiB, 32 at a time", loopback, 5000, 32, 16 << 10, []way{
		{"bare insert", bareInsert}, {"upload.Bytes", fromBytes}, {"upload.Reader", reader}, {"storage.Writer", writer},
	}},
}

// clients are the clients that the ways use.
type clients struct {
	endpoint string
	bare     *http.Client
	up       *upload.Uploader
	official *storage.Client
}

func connect(ctx context.Context, endpoint string) (*clients, error) {
	c := &clients{endpoint: endpoint, bare: newHTTPClient()}
	var err error
	if c.up, err = upload.New(newHTTPClient(), &upload.Options{Endpoint: endpoint, Memory: *memory}); err != nil {
		return nil, err
	}
	c.official, err = storage.NewClient(ctx, option.WithEndpoint(endpoint+"/storage/v1/"), option.WithHTTPClient(newHTTPClient()))
	return c, err
}

// newHTTPClient returns a client with its own connections, so that no way uses
// those of another one.
func newHTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 100, DialContext: (&net.Dialer{}).DialContext, WriteBufferSize: 64 << 10,
	}}
}

// cost is the cost of one round of a way.
type cost struct {
	wall, cpu time.Duration
	allocated float64 // bytes per upload
	heap      float64 // greatest size of the heap while the way ran, in bytes
}

func compare() error {
	ctx := context.Background()
	endpoints := map[link]*clients{}
	for _, l := range []link{loopback, slow, limited, fast} {
		endpoint, stop, err := emulator(l)
		if err != nil {
			return err
		}
		defer stop()
		if endpoints[l], err = connect(ctx, endpoint); err != nil {
			return err
		}
	}
	for _, b := range benchmarks {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), b.name) {
			continue
		}
		if b.workers == 0 {
			b.workers, b.uploads = *streams, *streams
			b.title = fmt.Sprint(*streams, " ", b.title)
		}
		b.ways = slices.DeleteFunc(b.ways, func(w way) bool { return slices.Contains(strings.Split(*skip, ","), w.name) })
		costs := make([][]cost, len(b.ways))
		for round := range *rounds + 1 {
			for i, w := range b.ways {
				c, err := b.run(ctx, w, endpoints[b.link])
				if err != nil {
					return fmt.Errorf("%s: %s: %w", b.name, w.name, err)
				}
				if round > 0 { // the first one warms up
					costs[i] = append(costs[i], c)
				}
			}
		}
		b.print(costs)
	}
	return nil
}

// run makes the uploads of one round.
func (b benchmark) run(ctx context.Context, w way, c *clients) (cost, error) {
	if *profile != "" {
		f, err := os.Create(filepath.Join(*profile, b.name+" "+w.name+".prof"))
		if err != nil {
			return cost{}, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return cost{}, err
		}
		defer pprof.StopCPUProfile()
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	heap := watchHeap()
	cpu, start := cpuTime(), time.Now()
	err := b.uploadAll(ctx, w, c)
	result := cost{wall: time.Since(start), cpu: cpuTime() - cpu, heap: heap()}
	runtime.ReadMemStats(&after)
	result.allocated = float64(after.TotalAlloc-before.TotalAlloc) / float64(b.uploads)
	return result, err
}

func (b benchmark) uploadAll(ctx context.Context, w way, c *clients) error {
	names := make(chan string, b.uploads)
	for i := range b.uploads {
		names <- fmt.Sprint("o", i)
	}
	close(names)
	var workers sync.WaitGroup
	errs := make(chan error, b.workers)
	for range b.workers {
		workers.Go(func() {
			for name := range names {
				if err := w.upload(ctx, c, name, b.size); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	workers.Wait()
	close(errs)
	return <-errs
}

// watchHeap returns a function that returns the greatest size that the heap had,
// dead objects included.
func watchHeap() (peak func() float64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	stop, done := make(chan struct{}), make(chan struct{})
	var greatest float64
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			metrics.Read(samples)
			greatest = max(greatest, float64(samples[0].Value.Uint64()))
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() float64 {
		close(stop)
		<-done
		return greatest
	}
}

// print writes the table of a benchmark.
func (b benchmark) print(costs [][]cost) {
	fmt.Printf("\n%s\n", b.title)
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "way\tMiB/s\tCPU ms per upload\tallocated MB per upload\theap MiB\tMiB/s, of %s\tCPU, of %s\n", b.ways[0].name, b.ways[0].name)
	rate := func(c cost) float64 { return float64(b.uploads) * float64(b.size) / (1 << 20) / c.wall.Seconds() }
	for i, w := range b.ways {
		value := func(of func(cost) float64) float64 { return median(costs[i], of) }
		// The ratio is that of each round, so that a change of the machine's speed
		// matters less.
		ratio := func(of func(cost) float64) float64 {
			var ratios []float64
			for round := range costs[i] {
				ratios = append(ratios, of(costs[i][round])/of(costs[0][round]))
			}
			slices.Sort(ratios)
			return ratios[len(ratios)/2]
		}
		cpu := func(c cost) float64 { return c.cpu.Seconds() * 1000 / float64(b.uploads) }
		fmt.Fprintf(out, "%s\t%.0f\t%.3f\t%.3f\t%.0f\t%.2f\t%.2f\n", w.name, value(rate), value(cpu),
			value(func(c cost) float64 { return c.allocated / 1e6 }), value(func(c cost) float64 { return c.heap / (1 << 20) }), ratio(rate), ratio(cpu))
	}
	_ = out.Flush()
}

func median(costs []cost, of func(cost) float64) float64 {
	var values []float64
	for _, c := range costs {
		values = append(values, of(c))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// emulate is the process of the emulator. It ends when its standard input does.
func emulate() error {
	srv, err := fakegcs.New(&fakegcs.Options{CreateBuckets: true, Discard: true, NoMD5: true, Latency: *serve, TotalRate: *limit, KeepRequests: -1})
	if err != nil {
		return err
	}
	defer srv.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	hs := &http.Server{Handler: srv}
	go func() {
		<-ctx.Done()
		_ = hs.Close()
	}()
	if err := hs.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// emulator starts the emulator.
func emulator(l link) (endpoint string, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	c := exec.Command(self, "-serve", l.latency.String(), "-limit", fmt.Sprint(l.limit))
	in, err := c.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = in.Close()
		_ = c.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the emulator: %w", err)
	}
	endpoint = strings.TrimSpace(line)
	if err := uniform(endpoint + "/storage/v1/b/bench"); err != nil {
		stop()
		return "", nil, fmt.Errorf("the emulator: %w", err)
	}
	return endpoint, stop, nil
}

// uniform gives a bucket uniform bucket-level access, as Google recommends. The replies
// then have no ACL.
// https://cloud.google.com/storage/docs/uniform-bucket-level-access
func uniform(bucket string) error {
	req, err := http.NewRequest("PATCH", bucket, strings.NewReader(`{"iamConfiguration":{"uniformBucketLevelAccess":{"enabled":true}}}`))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("PATCH %s: %s", bucket, resp.Status)
	}
	return nil
}
