// Command benchmany uploads a tree of small files with gcsup, with a bare net/http loop,
// and with rclone and gcloud if they are installed. It also measures a second run over
// the same tree. Package benchrun describes how they are compared.
//
//	go build -o bin/gcsup ./cmd/gcsup && go run ./internal/benchmany -gcsup bin/gcsup
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gcsup/internal/benchrun"
)

var (
	gcsup   = flag.String("gcsup", "gcsup", "`binary` of gcsup")
	rclone  = flag.String("rclone", "rclone", "`binary` of rclone 1.61 or newer, which can be sent to another endpoint")
	files   = flag.Int("files", 10_000, "number of files")
	size    = flag.Int("size", 16<<10, "bytes of each file")
	jobs    = flag.Int("jobs", 32, "uploads at a time of the bare loop, of rclone, and of gcsup in the comparison with it")
	fixed   = flag.String("fixed", "8,16,32,64,128,256", "`numbers` of uploads at a time that are compared with --jobs=auto")
	latency = flag.Duration("latency", 0, "delay of each reply of the server")
)

func main() {
	benchrun.Main(map[string]func([]string) error{"bare": bareLoop, "list": listAndWalk}, compare)
}

func compare(s *benchrun.Suite) error {
	tree := filepath.Join(s.Dir, "tree")
	if err := benchrun.FillTree(tree, *files, *size); err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // a second run trusts modification times that are so old
	var (
		checker  = benchrun.Server{Latency: *latency}
		emulator = benchrun.Server{Latency: *latency, Emulator: true}
		md5      = benchrun.Server{Latency: *latency, Emulator: true, MD5: true}
	)
	role := func(name, role string, server benchrun.Server) benchrun.Way {
		return benchrun.Way{Name: name, Server: server, Command: func(endpoint string, _ int) *exec.Cmd {
			return benchrun.Role(role, endpoint, tree)
		}}
	}
	ours := func(name string, server benchrun.Server, args ...string) benchrun.Way {
		return benchrun.Way{Name: name, Server: server, Command: func(string, int) *exec.Cmd {
			return upload(append(args, tree, "gs://bench/t/")...)
		}}
	}
	together := fmt.Sprintf(", %d at a time", *jobs)
	for _, c := range []benchrun.Comparison{
		{Name: "upload", Title: "uploaded" + together, Ways: []benchrun.Way{
			role("bare loop", "bare", checker),
			ours("gcsup", checker),
		}},
		{Name: "jobs", Title: "uploaded with --jobs=auto and with fixed numbers", Ways: numbers(ours, checker)},
		{Name: "again", Title: "uploaded before" + together, Ways: []benchrun.Way{
			role("list and walk", "list", emulator),
			ours("gcsup -n", emulator, "-n"),
			ours("gcsup =mtime", emulator, "--skip-identical=mtime"),
			ours("gcsup =crc32c", emulator, "--skip-identical"),
		}, Prepare: func(p *benchrun.Process) error {
			first := upload("--skip-identical=mtime", tree, "gs://bench/t/")
			first.Env = s.Environ(p)
			if out, err := first.CombinedOutput(); err != nil {
				return fmt.Errorf("%w\n%s", err, out)
			}
			return nil
		}},
		{Name: "others", Title: "uploaded to the emulator, which computes MD5s too" + together, Ways: []benchrun.Way{
			role("bare loop", "bare", md5),
			ours("gcsup", md5),
			{Name: "rclone", Server: md5, Optional: true, Command: func(endpoint string, n int) *exec.Cmd {
				c := exec.Command(*rclone, "copy", "--transfers", fmt.Sprint(*jobs), "--checkers", fmt.Sprint(*jobs), tree, fmt.Sprint("bench:bench/r", n))
				c.Env = []string{"RCLONE_CONFIG=" + os.DevNull, "RCLONE_CONFIG_BENCH_TYPE=google cloud storage", "RCLONE_CONFIG_BENCH_ANONYMOUS=true",
					"RCLONE_CONFIG_BENCH_ENDPOINT=" + endpoint + "/storage/v1/", "RCLONE_CONFIG_BENCH_BUCKET_POLICY_ONLY=true", "RCLONE_CONFIG_BENCH_NO_CHECK_BUCKET=true"}
				return c
			}},
			{Name: "gcloud", Server: md5, Optional: true, Command: func(string, int) *exec.Cmd {
				return exec.Command("gcloud", "storage", "cp", "-r", tree, "gs://bench/g/")
			}},
		}},
	} {
		c.Title = fmt.Sprintf("%s: %d files of %d bytes, %v per reply, %s", c.Name, *files, *size, *latency, c.Title)
		c.Work, c.Unit = float64(*files), "file"
		if err := s.Compare(c); err != nil {
			return err
		}
	}
	return nil
}

// numbers returns --jobs=auto, and the numbers of the flag -fixed.
func numbers(ours func(string, benchrun.Server, ...string) benchrun.Way, server benchrun.Server) []benchrun.Way {
	ways := []benchrun.Way{ours("auto", server, "--jobs=auto")}
	for n := range strings.SplitSeq(*fixed, ",") {
		ways = append(ways, ours(n, server, "--jobs="+n))
	}
	return ways
}

// upload returns the command of gcsup that uploads a tree. args may have another --jobs.
func upload(args ...string) *exec.Cmd {
	return exec.Command(*gcsup, append([]string{"cp", "-r", "--quiet", "--jobs", fmt.Sprint(*jobs)}, args...)...)
}

// bareLoop measures the minimum cost of a checked upload of many files: each worker
// reads a file, hashes it and inserts it. It checks only the status.
func bareLoop(args []string) error {
	endpoint, tree, workers := args[0], args[1], *jobs
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
func listAndWalk(args []string) error {
	endpoint, tree := args[0], args[1]
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

func insert(hc *http.Client, endpoint, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return benchrun.BareInsert(context.Background(), hc, endpoint, "b/"+filepath.Base(path), data)
}
