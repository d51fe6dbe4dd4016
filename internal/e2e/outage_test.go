//go:build unix

package e2e_test

import (
	"flag"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

var outage = flag.Duration("outage", 3*time.Second, "how long the service is away, in real time")

// TestOutage stops the service in the middle of an upload, in real time, and
// restarts it. It checks that the upload continues by itself within the longest
// wait.
//
//	go test ./internal/e2e -run Outage -outage 10m -timeout 20m -v
func TestOutage(t *testing.T) {
	t.Parallel()
	// The default of --max-wait is for outages of minutes.
	wait, stall := 2*time.Second, time.Second
	if *outage >= time.Minute {
		wait, stall = 32*time.Second, 20*time.Second
	}
	for _, tt := range []struct {
		name       string
		away, back func(e *emulator)
		flags      []string
	}{
		{"its process is gone", (*emulator).kill, (*emulator).start, nil},
		{"its process is stopped", func(e *emulator) { e.child.Signal(syscall.SIGSTOP) }, func(e *emulator) {
			e.child.Signal(syscall.SIGCONT)
			e.release()
		}, []string{"--stall-timeout", stall.String()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const size = 20<<20 + 5
			dir := t.TempDir()
			path := filepath.Join(dir, "a.bin")
			source(t, path, size, 1)
			e := startEmulator(t)
			e.hold(5<<20, 0) // a new emulator does not have this fault plan
			args := append([]string{"cp", "--json", "--state-dir", filepath.Join(dir, "state"), "--endpoint", e.url,
				"--max-wait", wait.String(), "--retry-for", (*outage + time.Hour).String()}, tt.flags...)
			c := run(t, environment(), append(args, path, "gs://demo/a")...)
			if !e.reaches(c, 256<<10) {
				t.Fatal(c.output())
			}
			tt.away(e)
			time.Sleep(*outage)
			if !c.Alive() {
				t.Fatalf("the upload did not wait: %s", c.output())
			}
			tt.back(e)
			returned := time.Now()
			if c.Wait() != 0 {
				t.Fatal(c.output())
			}
			after := time.Since(returned)
			// The upload continues within the longest wait if no wait is longer
			// than that. The elapsed time also depends on the machine.
			waits := 0
			for _, l := range c.lines() {
				if l.Type != "waiting" {
					continue
				}
				waits++
				if l.DelayMS > wait.Milliseconds() {
					t.Errorf("a wait of %d ms, want at most %v", l.DelayMS, wait)
				}
			}
			if waits == 0 {
				t.Errorf("the upload did not wait: %s", c.output())
			}
			r := c.result()
			t.Logf("outage of %v; finished %v after it (longest wait %v); %d of %d bytes sent twice", *outage, after.Round(time.Millisecond), wait, r.BytesResent, size)
			e.complete(map[string]string{"a": path})
			if n := account(t, e.requests(), nil).sessions; n != 1 {
				t.Errorf("%d sessions, want 1", n)
			}
		})
	}
}
