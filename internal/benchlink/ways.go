package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"gcsup/internal/benchrun"
)

// bare uploads a file by PUTs at the same time.
func (l *link) bare(file string, connections int) benchrun.Way {
	return benchrun.Way{Name: fmt.Sprint(connections, " bare PUTs"), Command: func(endpoint string, n int) *exec.Cmd {
		role := benchrun.Role("bare", endpoint, file, fmt.Sprint("bare", n), strconv.Itoa(connections))
		c := l.client(role.Args...)
		c.Err = role.Err
		return c
	}}
}

// gcsup uploads a file with gcsup.
func (l *link) gcsup(name, file string, flags ...string) benchrun.Way {
	return benchrun.Way{Name: name, Command: func(_ string, n int) *exec.Cmd {
		return l.cp(file, fmt.Sprint("o", n), append(flags, "--json", "--quiet")...)
	}}
}

func (l *link) cp(file, object string, flags ...string) *exec.Cmd {
	c := l.client(append(append([]string{*gcsup, "cp"}, flags...), file, "gs://bench/"+object)...)
	c.Env = []string{"NO_PROXY=*"}
	return c
}

// barePuts is the role of bare: each connection sends a part of the file as an object, and
// computes its CRC32C on the way.
func barePuts(args []string) error {
	endpoint, path, object := args[0], args[1], args[2]
	connections, err := strconv.ParseInt(args[3], 10, 64)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	hc := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{Timeout: 30 * time.Second}).DialContext, WriteBufferSize: 64 << 10}}
	var puts errgroup.Group
	for i := range connections {
		from, to := info.Size()*i/connections, info.Size()*(i+1)/connections
		puts.Go(func() error {
			return benchrun.BarePut(context.Background(), hc, endpoint, fmt.Sprint(object, "-", i), io.NewSectionReader(f, from, to-from), to-from)
		})
	}
	if err := puts.Wait(); err != nil {
		return err
	}
	var line resultLine
	line.Type, line.Parallel.Connections = "result", int(connections)
	return json.NewEncoder(os.Stdout).Encode(line)
}

// resultLine is the line of a way that has the number of its connections: a part of the
// result that gcsup prints with --json.
type resultLine struct {
	Type     string `json:"type"`
	Parallel struct {
		Connections int `json:"connections"` // 0 for a file that is not sent in parts
	} `json:"parallel"`
}

// connectionsOf returns the number of connections that carried the most bytes of a run.
func connectionsOf(r benchrun.Run) (float64, error) {
	for line := range bytes.Lines(r.Output) {
		var result resultLine
		if json.Unmarshal(line, &result) == nil && result.Type == "result" { // others are warnings
			return float64(max(1, result.Parallel.Connections)), nil
		}
	}
	return 0, fmt.Errorf("no result in the output:\n%s", r.Output)
}
