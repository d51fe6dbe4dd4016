//go:build linux

package fire_test

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
)

// TestSuspended suspends a worker that sends a file, while its request for another task waits at the NATS server. The
// server must not send it its own task again: another worker continues in time.
func TestSuspended(t *testing.T) {
	t.Parallel()
	const limit = ackWait + 2*time.Second
	f := newFleet(t, "2MiB")
	f.cluster = startCluster(t, 1, nil)
	f.write("large", 32<<20, 1)
	f.submit()
	f.addWorkers(2, func() int { return 0 })
	first, second := f.slots[0], f.slots[1]
	f.begin(first)
	if !await(time.Minute, func() bool { return first.gcs.up.Load() > 4<<20 }) {
		f.logs()
		t.Fatal("the worker does not send the file")
	}
	f.begin(second)
	if !poll(100*time.Millisecond, time.Minute, func() bool {
		out, err := result(f.command("status", "--json"))
		return err == nil && strings.Count(out, `"pid":`) == 2
	}) {
		t.Fatal("the second worker has not started")
	}
	first.worker.Signal(syscall.SIGSTOP)
	stopped := time.Now()
	var took time.Duration
	if !poll(50*time.Millisecond, time.Minute, func() bool {
		for _, r := range f.emulator.requests() {
			if r.Op == faults.OpQuery && r.Time.After(stopped) && took == 0 {
				took = r.Time.Sub(stopped)
			}
		}
		return took > 0
	}) || took > limit {
		t.Errorf("continued after %v, want at most %v", took, limit)
	}
	if !poll(200*time.Millisecond, time.Minute, f.uploaded) {
		t.Error("the file is not uploaded")
	}
	first.worker.Signal(syscall.SIGCONT)
	f.end(first)
	f.end(second)
	if got, err := f.emulator.object("data", "large"); err != nil || !bytes.Equal(got, f.files["large"]) {
		t.Errorf("the object is wrong (%v)", err)
	}
	if t.Failed() {
		f.logs()
	}
}
