package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"text/tabwriter"
	"time"

	"gcsup/internal/benchrun"
)

// killed kills each way in the middle of an upload over a limited link, runs it
// again, and prints how many bytes both runs sent, and how many other objects are
// left.
func killed(s *benchrun.Suite, file string) error {
	ways := s.Select("killed", resumable(benchrun.Server{Emulator: true, TotalRate: 8 * *rate, Latency: *latency}, file))
	if len(ways) == 0 {
		return nil
	}
	fmt.Printf("\nkilled: SIGKILL %v after the first reply, over a link of %d MiB/s, and a second run\n", killAfter().Round(100*time.Millisecond), 8**rate>>20)
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "way\tMiB received\tsecond run\tobjects left\t")
	for _, w := range ways {
		if err := killOne(t, s, w); err != nil {
			return err
		}
	}
	return t.Flush()
}

// killAfter returns the time in which the link of killOne carries half of the file.
func killAfter() time.Duration {
	return time.Duration(float64(*size) / 2 / float64(8**rate) * float64(time.Second))
}

func killOne(out io.Writer, s *benchrun.Suite, w benchrun.Way) error {
	p, err := s.Start(w.Server)
	if err != nil {
		return err
	}
	defer p.Stop()
	command := func() *exec.Cmd {
		c := w.Command(p.Endpoint, 0)
		c.Env = append(s.Environ(p), c.Env...)
		return c
	}
	kill, err := benchrun.Killable(command())
	if err != nil {
		return err
	}
	var st stats
	for err == nil && len(st.Ops) == 0 { // until the first reply
		time.Sleep(10 * time.Millisecond)
		st, err = readStats(p.Endpoint)
	}
	time.Sleep(killAfter())
	kill()
	if err != nil {
		return err
	}
	result := "ok"
	if err := command().Run(); err != nil {
		result = err.Error()
	}
	if st, err = readStats(p.Endpoint); err != nil {
		return err
	}
	var list struct{ Items []struct{ Name string } }
	if err := get(p.Endpoint+"/storage/v1/b/bench/o", &list); err != nil {
		return err
	}
	left := 0
	for _, o := range list.Items {
		if o.Name != "o0" {
			left++
		}
	}
	_, err = fmt.Fprintf(out, "%s\t%d\t%s\t%d\t\n", w.Name, st.Received>>20, result, left)
	return err
}

// stats has the emulator's counters.
type stats struct {
	Ops      map[string]int
	Received int64
}

func readStats(endpoint string) (stats, error) {
	var s stats
	err := get(endpoint+"/_fakegcs/stats", &s)
	return s, err
}

func get(url string, v any) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(v)
}
