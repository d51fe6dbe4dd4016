// Command benchmany uploads a tree of small files to the emulator with gcsup, with a
// bare net/http loop, and with rclone and gcloud if they are installed. Each runs in
// turn as a process of its own. So does the emulator. It prints the files per second,
// the CPU time per file, and both as ratios to the bare loop.
//
//	go build -o /tmp/gcsup ./cmd/gcsup && go run ./internal/benchmany -gcsup /tmp/gcsup
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

var (
	gcsup   = flag.String("gcsup", "gcsup", "`binary` of gcsup")
	rclone  = flag.String("rclone", "rclone", "`binary` of rclone 1.61 or newer, which can be sent to another endpoint")
	files   = flag.Int("files", 10_000, "number of files")
	size    = flag.Int("size", 16<<10, "bytes of each file")
	jobs    = flag.Int("jobs", 32, "uploads at a time")
	rounds  = flag.Int("rounds", 3, "how often each way runs; the median counts")
	latency = flag.Duration("latency", 0, "delay of each reply of the emulator")
	only    = flag.String("only", "", "comma-separated `names` of the ways to run; empty runs all that are installed")
	bare    = flag.String("bare", "", "run the bare loop itself, to the `endpoint`")
	listing = flag.String("list", "", "list and walk once, as the least that a second run costs, from the `endpoint`")
)

func main() {
	flag.Parse()
	var err error
	switch {
	case *bare != "":
		err = bareLoop(*bare, flag.Arg(0), *jobs)
	case *listing != "":
		err = listAndWalk(*listing, flag.Arg(0))
	default:
		err = compare()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmany:", err)
		os.Exit(1)
	}
}

// way is one program that uploads the tree.
type way struct {
	name    string
	md5     bool // it compares the MD5 of each object; the emulator then needs more time
	command func(tree, endpoint string) *exec.Cmd
	wall    []time.Duration
	cpu     []time.Duration
}

func compare() error {
	dir, err := os.MkdirTemp("", "benchmany")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "tree")
	if err := grow(tree); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	n := fmt.Sprint(*jobs)
	ways := []*way{
		{name: "bare loop", command: func(tree, endpoint string) *exec.Cmd {
			return exec.Command(self, "-jobs", n, "-bare", endpoint, tree)
		}},
		{name: "gcsup", command: func(tree, endpoint string) *exec.Cmd {
			return exec.Command(*gcsup, "cp", "-r", "--quiet", "--jobs", n, tree, "gs://bench/x/")
		}},
		{name: "list and walk", command: func(tree, endpoint string) *exec.Cmd {
			return exec.Command(self, "-list", endpoint, tree)
		}},
		{name: "gcsup -n again", command: func(tree, endpoint string) *exec.Cmd {
			return exec.Command(*gcsup, "cp", "-r", "-n", "--quiet", "--jobs", n, tree, "gs://bench/t/")
		}},
		{name: "gcsup =mtime again", command: func(tree, endpoint string) *exec.Cmd {
			return exec.Command(*gcsup, "cp", "-r", "--skip-identical=mtime", "--quiet", "--jobs", n, tree, "gs://bench/t/")
		}},
		{name: "gcsup =crc32c again", command: func(tree, endpoint string) *exec.Cmd {
			return exec.Command(*gcsup, "cp", "-r", "--skip-identical", "--quiet", "--jobs", n, tree, "gs://bench/t/")
		}},
		{name: "rclone", md5: true, command: func(tree, endpoint string) *exec.Cmd {
			c := exec.Command(*rclone, "copy", "--transfers", n, "--checkers", n, tree, "bench:bench/r")
			c.Env = append(os.Environ(), "RCLONE_CONFIG="+os.DevNull, "RCLONE_CONFIG_BENCH_TYPE=google cloud storage", "RCLONE_CONFIG_BENCH_ANONYMOUS=true",
				"RCLONE_CONFIG_BENCH_ENDPOINT="+endpoint+"/storage/v1/", "RCLONE_CONFIG_BENCH_BUCKET_POLICY_ONLY=true", "RCLONE_CONFIG_BENCH_NO_CHECK_BUCKET=true")
			return c
		}},
		{name: "gcloud", md5: true, command: func(tree, endpoint string) *exec.Cmd {
			c := exec.Command("gcloud", "storage", "cp", "-r", tree, "gs://bench/g/")
			c.Env = append(os.Environ(), "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE="+endpoint+"/", "CLOUDSDK_CORE_PROJECT=p", "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING=1",
				"CLOUDSDK_AUTH_DISABLE_CREDENTIALS=1", "CLOUDSDK_CONFIG="+dir+"/gcloud", "CLOUDSDK_CORE_DISABLE_PROMPTS=1")
			return c
		}},
	}
	ways = slices.DeleteFunc(ways, func(w *way) bool {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), w.name) {
			return true
		}
		path := w.command(tree, "").Path
		_, err := exec.LookPath(path)
		return err != nil
	})
	endpoints := map[bool]string{}
	for _, md5 := range []bool{false, true} {
		endpoint, stop, err := emulator(md5)
		if err != nil {
			return err
		}
		defer stop()
		endpoints[md5] = endpoint
	}
	// The second run. Wait until the modification times are two seconds old.
	time.Sleep(2 * time.Second)
	first := exec.Command(*gcsup, "cp", "-r", "--skip-identical=mtime", "--quiet", tree, "gs://bench/t/")
	first.Env = append(os.Environ(), "STORAGE_EMULATOR_HOST="+endpoints[false], "XDG_STATE_HOME="+dir)
	if out, err := first.CombinedOutput(); err != nil {
		return fmt.Errorf("first run: %w\n%s", err, out)
	}
	for range *rounds {
		for _, w := range ways {
			endpoint := endpoints[w.md5]
			c := w.command(tree, endpoint)
			if c.Env == nil {
				c.Env = append(os.Environ(), "STORAGE_EMULATOR_HOST="+endpoint, "XDG_STATE_HOME="+dir)
			}
			var output bytes.Buffer
			c.Stdout, c.Stderr = &output, &output
			start := time.Now()
			if err := c.Run(); err != nil {
				return fmt.Errorf("%s: %w\n%s", w.name, err, output.Bytes())
			}
			w.wall = append(w.wall, time.Since(start))
			w.cpu = append(w.cpu, c.ProcessState.UserTime()+c.ProcessState.SystemTime())
		}
	}
	return report(ways)
}

func report(ways []*way) error {
	fmt.Printf("%d files of %d bytes, %d at a time, %v per reply, median of %d\n", *files, *size, *jobs, *latency, *rounds)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "way\tfiles/s\tCPU ms/file\tfiles/s, of the bare loop's\tCPU, of the bare loop's\t")
	base := ways[0]
	for _, w := range ways {
		wall, cpu := median(w.wall), median(w.cpu)
		fmt.Fprintf(t, "%s\t%.0f\t%.3f\t%.2f\t%.2f\t\n", w.name, float64(*files)/wall.Seconds(), cpu.Seconds()*1000/float64(*files),
			median(base.wall).Seconds()/wall.Seconds(), cpu.Seconds()/median(base.cpu).Seconds())
	}
	return t.Flush()
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

// grow makes the tree. Each directory has 100 files with different bytes.
func grow(tree string) error {
	random := rand.NewChaCha8([32]byte{1})
	data := make([]byte, *size)
	_, _ = random.Read(data)
	for i := range *files {
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

// emulator starts the emulator and returns its address.
func emulator(md5 bool) (endpoint string, stop func(), err error) {
	c := exec.Command(*gcsup, "emulator", "--addr", "127.0.0.1:0", "--create-buckets", "--discard", fmt.Sprintf("--no-md5=%v", !md5), "--latency", latency.String())
	out, err := c.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_, endpoint, ok := strings.Cut(strings.TrimSpace(line), "=")
	if err != nil || !ok {
		stop()
		return "", nil, fmt.Errorf("the emulator printed %q: %v", line, err)
	}
	return endpoint, stop, nil
}

// bareLoop measures the minimum cost of a checked upload of many files: each worker
// reads a file, hashes it and inserts it. It checks only the status.
func bareLoop(endpoint, tree string, workers int) error {
	hc := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: workers, DialContext: (&net.Dialer{}).DialContext, WriteBufferSize: 64 << 10,
	}}
	paths := make(chan string, workers)
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range workers {
		group.Go(func() {
			for path := range paths {
				if err := insert(hc, endpoint, path); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	err := filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths <- path
		}
		return err
	})
	close(paths)
	group.Wait()
	if err != nil {
		return err
	}
	return failed
}

// listAndWalk lists the objects of the first run, and reads the metadata of the files
// in the tree.
func listAndWalk(endpoint, tree string) error {
	objects, files := 0, 0
	for token := ""; ; {
		resp, err := http.Get(endpoint + "/storage/v1/b/bench/o?maxResults=1000&prefix=t/&fields=" +
			url.QueryEscape("items(name,size,crc32c,generation,timeCreated,contentEncoding,metadata/goog-reserved-file-mtime,metadata/gcsup-uncompressed-size),nextPageToken") + "&pageToken=" + url.QueryEscape(token))
		if err != nil {
			return err
		}
		var page struct {
			Items         []struct{ Name, Size, CRC32C, Generation, TimeCreated string }
			NextPageToken string
		}
		err = json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		if err != nil {
			return err
		}
		objects += len(page.Items)
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	err := filepath.WalkDir(tree, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files++
			_, err = d.Info()
		}
		return err
	})
	if err == nil && objects != files {
		err = fmt.Errorf("%d objects of %d files", objects, files)
	}
	return err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func insert(hc *http.Client, endpoint, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(data, castagnoli))
	const boundary = "b0b0b0b0b0b0b0b0"
	head := fmt.Sprintf("--%s\r\nContent-Type: application/json\r\n\r\n{\"name\":%q,\"crc32c\":%q}\r\n--%s\r\nContent-Type: application/octet-stream\r\n\r\n",
		boundary, "b/"+filepath.Base(path), base64.StdEncoding.EncodeToString(sum), boundary)
	tail := "\r\n--" + boundary + "--\r\n"
	body := io.MultiReader(strings.NewReader(head), bytes.NewReader(data), strings.NewReader(tail))
	req, err := http.NewRequest("POST", endpoint+"/upload/storage/v1/b/bench/o?uploadType=multipart&name="+url.QueryEscape("b/"+filepath.Base(path)), body)
	if err != nil {
		return err
	}
	req.ContentLength = int64(len(head) + len(data) + len(tail))
	req.Header.Set("Content-Type", "multipart/related; boundary="+boundary)
	resp, err := hc.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != 200 {
		return fmt.Errorf("%s: status %d", path, resp.StatusCode)
	}
	return nil
}
