package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gcsup/internal/benchrun"
)

// manyBenchmark uploads a tree of small files, also a second time.
var manyBenchmark = benchrun.Benchmark{Name: "many", Flags: manyFlags, Comparisons: compareMany, Roles: roles}

var many struct {
	rclone               string
	files, size, workers int
	fixed                string
	latency              time.Duration
}

func manyFlags(f *flag.FlagSet) {
	gcsupFlag(f)
	f.StringVar(&many.rclone, "rclone", "rclone", "`binary` of rclone 1.61 or newer, which can be sent to another endpoint")
	f.IntVar(&many.files, "files", 10_000, "number of files")
	f.IntVar(&many.size, "size", 16<<10, "bytes of each file")
	f.IntVar(&many.workers, "jobs", 32, "uploads at a time of the bare loop, of rclone, and of gcsup in the comparison with it")
	f.StringVar(&many.fixed, "fixed", "8,16,32,64,128,256", "`numbers` of uploads at a time that are compared with --jobs=auto")
	f.DurationVar(&many.latency, "latency", 0, "delay of each reply of the server")
}

func compareMany(s *benchrun.Suite) ([]benchrun.Comparison, error) {
	tree := filepath.Join(s.Dir, "tree")
	if err := benchrun.FillTree(tree, many.files, many.size); err != nil {
		return nil, err
	}
	server, md5 := benchrun.Server{Latency: many.latency}, benchrun.Server{Latency: many.latency, MD5: true}
	bare := func(server benchrun.Server) benchrun.Way {
		return uploads("bare loop", server, job{Do: "bare insert", Tree: tree, Size: int64(many.size), Workers: many.workers})
	}
	cp := func(name string, server benchrun.Server, flags ...string) benchrun.Way { // flags may have another --jobs
		args := slices.Concat([]string{"cp", "-r", "--quiet", "--jobs", fmt.Sprint(many.workers)}, flags, []string{tree, "gs://bench/t/"})
		return benchrun.Way{Name: name, Server: server, Command: func(string, int) *exec.Cmd { return exec.Command(gcsup, args...) }}
	}
	numbers := []benchrun.Way{cp("auto", server, "--jobs=auto", "--skip-identical=off")}
	for n := range strings.SplitSeq(many.fixed, ",") {
		numbers = append(numbers, cp(n, server, "--jobs="+n, "--skip-identical=off"))
	}
	first := cp("first", server, "--skip-identical=mtime")
	usual := benchrun.Usual(float64(many.files), "file")
	together := fmt.Sprintf(", %d at a time", many.workers)
	comparisons := []benchrun.Comparison{
		{Name: "upload", Title: "uploaded" + together, Figures: usual, Ways: []benchrun.Way{
			bare(server),
			cp("gcsup", server, "--skip-identical=off"),
		}},
		{Name: "jobs", Title: "uploaded with --jobs=auto and with fixed numbers", Figures: usual, Ways: numbers},
		{Name: "again", Title: "uploaded before" + together, Figures: usual, Ways: []benchrun.Way{
			{Name: "list and walk", Server: server, Command: func(endpoint string, _ int) *exec.Cmd { return benchrun.Role("list", endpoint, tree) }},
			cp("gcsup -n", server, "-n"),
			cp("gcsup =mtime", server, "--skip-identical=mtime"),
			cp("gcsup =crc32c", server, "--skip-identical"),
		}, Prepare: func(s *benchrun.Suite, p *benchrun.Process) error {
			return s.Measure(&benchrun.Run{Way: first, Server: p})
		}},
		{Name: "others", Title: "uploaded to a server that computes MD5s too" + together, Figures: usual, Ways: []benchrun.Way{
			bare(md5),
			cp("gcsup", md5, "--skip-identical=off"),
			{Name: "rclone", Server: md5, Optional: true, Command: func(endpoint string, n int) *exec.Cmd {
				c := exec.Command(many.rclone, "copy", "--transfers", fmt.Sprint(many.workers), "--checkers", fmt.Sprint(many.workers), tree, fmt.Sprint("bench:bench/r", n))
				c.Env = []string{"RCLONE_CONFIG=" + os.DevNull, "RCLONE_CONFIG_BENCH_TYPE=google cloud storage", "RCLONE_CONFIG_BENCH_ANONYMOUS=true",
					"RCLONE_CONFIG_BENCH_ENDPOINT=" + endpoint + "/storage/v1/", "RCLONE_CONFIG_BENCH_BUCKET_POLICY_ONLY=true", "RCLONE_CONFIG_BENCH_NO_CHECK_BUCKET=true"}
				return c
			}},
			{Name: "gcloud", Server: md5, Optional: true, Command: func(string, int) *exec.Cmd {
				return exec.Command("gcloud", "storage", "cp", "-r", tree, "gs://bench/g/")
			}},
		}},
	}
	for i := range comparisons {
		comparisons[i].Title = fmt.Sprintf("%d files of %d bytes, %v per reply, %s", many.files, many.size, many.latency, comparisons[i].Title)
	}
	return comparisons, nil
}

// walk calls do for each file of a tree.
func walk(tree string, do func(path string, d fs.DirEntry) error) error {
	return filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			err = do(path, d)
		}
		return err
	})
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
	err := walk(tree, func(_ string, d fs.DirEntry) error {
		files++
		_, err := d.Info()
		return err
	})
	if err == nil && objects != files {
		err = fmt.Errorf("%d objects of %d files", objects, files)
	}
	return err
}
