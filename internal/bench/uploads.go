package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"

	"gcsup/internal/benchrun"
	"gcsup/upload"
)

// job is the work of the role "upload": uploads of one of the ways of this program.
type job struct {
	Do      string // name in ways
	Workers int    // upload at a time; 0 means 1

	// What is uploaded: the files of a tree, which have Size bytes each; or a file, in Uploads equal parts; or
	// Uploads of Size bytes that are generated. 0 uploads mean 1.
	Tree    string
	Path    string
	Uploads int
	Size    int64

	// If set, one more connection with this congestion control sends until the others have ended.
	Beside string

	Run int // its number
}

// uploads returns a way that runs the role "upload".
func uploads(name string, server benchrun.Server, j job) benchrun.Way {
	j.Uploads, j.Workers = max(1, j.Uploads), max(1, j.Workers)
	return benchrun.Way{Name: name, Server: server, Command: func(endpoint string, n int) *exec.Cmd {
		j.Run = n
		description, _ := json.Marshal(j) // cannot fail
		return benchrun.Role("upload", string(description), endpoint)
	}}
}

var roles = map[string]func(args []string) error{"list": listAndWalk, "upload": func(args []string) error {
	var j job
	if err := json.Unmarshal([]byte(args[0]), &j); err != nil {
		return err
	}
	return j.run(context.Background(), args[1])
}}

// run uploads, and prints a result.
func (j job) run(ctx context.Context, endpoint string) error {
	do, err := ways[j.Do](ctx, endpoint)
	if err != nil {
		return err
	}
	if j.Beside != "" {
		end := besides(ctx, endpoint, j.Beside)
		defer end()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := atATime(j.Workers, j.sources, func(s named) error { return do(ctx, s.object, s.source) }); err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	r := result{Type: "result", Allocated: float64(after.TotalAlloc-before.TotalAlloc) / 1000 / float64(j.Uploads)}
	r.Parallel.Connections = j.Workers
	return json.NewEncoder(os.Stdout).Encode(r)
}

// besides sends over one connection with a congestion control until end is called.
func besides(ctx context.Context, endpoint, control string) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	hc := &http.Client{Transport: upload.NewTransport(&upload.TransportOptions{CongestionControl: control})}
	go func() {
		defer close(ended)
		_ = barePut(ctx, hc, endpoint, "beside", &endless{}, 1<<40) // ends with an error
	}()
	return func() {
		cancel()
		<-ended
	}
}

// named is a source with the name of its object.
type named struct {
	object string
	source
}

// sources emits what is uploaded in a run. Each run makes new objects of a file.
func (j job) sources(emit func(named)) error {
	if j.Tree != "" {
		return walk(j.Tree, func(path string, _ fs.DirEntry) error {
			emit(named{"b/" + filepath.Base(path), source{path: path, size: j.Size}})
			return nil
		})
	}
	total, prefix := int64(j.Uploads)*j.Size, "o"
	if j.Path != "" {
		info, err := os.Stat(j.Path)
		if err != nil {
			return err
		}
		total, prefix = info.Size(), fmt.Sprint("o", j.Run, "-")
	}
	for i := range int64(j.Uploads) {
		from, to := total*i/int64(j.Uploads), total*(i+1)/int64(j.Uploads)
		emit(named{fmt.Sprint(prefix, i), source{j.Path, from, to - from}})
	}
	return nil
}

// atATime calls do for each source that produce emits, in that many goroutines.
func atATime(workers int, produce func(emit func(named)) error, do func(named) error) error {
	sources := make(chan named, workers)
	var group errgroup.Group
	for range workers {
		group.Go(func() (failed error) {
			for s := range sources { // to the end, so that produce does not block
				if err := do(s); err != nil {
					failed = err
				}
			}
			return failed
		})
	}
	err := produce(func(s named) { sources <- s })
	close(sources)
	return errors.Join(err, group.Wait())
}

// result is a line of the output of a way: of this program, or a part of the result that
// gcsup prints with --json.
type result struct {
	Type      string  `json:"type"`
	Allocated float64 `json:"allocated"` // KB per upload
	Parallel  struct {
		Connections int `json:"connections"` // that carried the most bytes; 0 for a file that is not sent in parts
	} `json:"parallel"`
}

// resultOf returns the result in the output of a run.
func resultOf(r *benchrun.Run) (result, error) {
	for line := range bytes.Lines(r.Output) {
		var result result
		if json.Unmarshal(line, &result) == nil && result.Type == "result" { // others are warnings
			return result, nil
		}
	}
	return result{}, fmt.Errorf("no result in the output:\n%s", r.Output)
}

var allocated = benchrun.Figure{Title: "allocated KB/upload", Of: func(r *benchrun.Run) (float64, error) {
	result, err := resultOf(r)
	return result.Allocated, err
}}

var connectionsUsed = benchrun.Figure{Title: "connections", Of: func(r *benchrun.Run) (float64, error) {
	result, err := resultOf(r)
	if err != nil {
		return 0, err
	}
	return float64(max(1, result.Parallel.Connections)), nil
}}
