//go:build unix

package fire_test

import (
	"bytes"
	"flag"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

var outage = flag.Duration("outage", 3*time.Second, "how long the service is away, in real time")

// TestOutage: the service goes away in the middle of an upload, in real time,
// and comes back. The upload goes on within one longest wait, by itself.
//
//	go test ./internal/fire -run Outage -outage 10m -timeout 20m -v
func TestOutage(t *testing.T) {
	t.Parallel()
	// The default of --max-wait is for outages of minutes.
	wait, stall := time.Second, time.Second
	if *outage >= time.Minute {
		wait, stall = 32*time.Second, 20*time.Second
	}
	for _, tt := range []struct {
		name       string
		away, back func(e *emulator)
		notice     time.Duration // more than a wait that it may take: a request is under way
	}{
		{"its process is gone", (*emulator).kill, (*emulator).start, 0},
		{"its process says nothing", func(e *emulator) { e.signal(syscall.SIGSTOP) }, func(e *emulator) { e.signal(syscall.SIGCONT) }, stall},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const size = 20<<20 + 5
			dir := t.TempDir()
			path := filepath.Join(dir, "a.bin")
			content := source(t, path, size, 1)
			e := startEmulator(t, "--rate", "12MiB")
			c := run(t, environment(), "cp", "--json", "--state-dir", filepath.Join(dir, "state"), "--endpoint", e.url(),
				"--max-wait", wait.String(), "--stall-timeout", stall.String(), "--retry-for", (*outage + time.Hour).String(), path, "gs://demo/a")
			if !until(c.done, time.Millisecond, func() bool { return e.held() > 4<<20 }) {
				t.Fatal(c.said())
			}
			tt.away(e)
			held := e.held()
			time.Sleep(*outage)
			if !c.alive() {
				t.Fatalf("it did not wait: %s", c.said())
			}
			tt.back(e)
			returned := time.Now()
			flowing := func() bool { return e.held() > held }
			if !until(c.done, time.Millisecond, flowing) && !flowing() {
				t.Fatal("no byte came within a minute of the end of the outage")
			}
			after := time.Since(returned)
			// And two seconds for a machine that does other things too.
			if most := wait + tt.notice + 2*time.Second; after > most {
				t.Errorf("bytes flow again after %v, want at most %v", after, most)
			}
			if c.code() != 0 {
				t.Fatal(c.said())
			}
			r := c.result()
			t.Logf("away for %v; bytes flow again after %v (longest wait %v); %d bytes handed over twice of %d", *outage, after.Round(time.Millisecond), wait, r.BytesResent, size)
			if got, _ := e.object("a"); !bytes.Equal(got, content) {
				t.Error("the object is not the source")
			}
			if n := starts(e); n != 1 {
				t.Errorf("%d sessions, want 1", n)
			}
		})
	}
}

func (e *emulator) signal(s syscall.Signal) {
	e.t.Helper()
	if err := e.child.cmd.Process.Signal(s); err != nil {
		e.t.Fatal(fmt.Errorf("signal the emulator: %w", err))
	}
}
