//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/fleet/internal/fleet"
	"gcsup/internal/cli/exit"
	"gcsup/internal/testprocess"
)

// work starts a worker that serves the queue of the directory.
func (w *world) work(args ...string) *testprocess.Process {
	w.t.Helper()
	return testprocess.Start(w.t, w.command(append([]string{"work", "--state=gs://state-bucket/uploads", "--state-unsealed", "--log=off"}, args...)...))
}

// TestStatusOfWork looks at a worker that has its queue in a directory, submits to it, and waits for it
// while it is stopped, and while it ends because the queue is empty.
func TestStatusOfWork(t *testing.T) {
	t.Parallel()
	const size, reached = 4 << 20, 2 << 20
	// The uploads wait in the middle of the large file until the test has seen that.
	busy := faults.Fault{
		Match: faults.Match{Op: faults.OpPut, From: reached, To: reached + 1}, Times: -1,
		Do: faults.Action{Effect: faults.EffectStatus, Status: 503},
	}
	w := newWorld(t, fakegcs.Options{Faults: []faults.Fault{busy}})
	files := map[string][]byte{"large": w.write("large", size), "a": w.write("a", 10)}
	first := w.work("--chunk-size=1MiB", "--max-wait=1s")
	w.await("one worker", func(s *fleet.Status) bool { return len(s.Workers) == 1 })
	w.wants(exit.Temporary, "use gcsup-fleet up", tryOnce...) // a second worker
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree")
	wait := func() *testprocess.Process {
		t.Helper()
		cmd := w.command("status", "--wait", "--json")
		cmd.Stderr = nil
		p := testprocess.Start(t, cmd)
		var line struct {
			Type  string
			Files int
		}
		text := p.Await(`^.*\n`)[0]
		if err := json.Unmarshal([]byte(text), &line); err != nil || line.Type != "progress" || line.Files != 2 {
			t.Errorf("the first line is %s (%v)", text, err)
		}
		return p
	}
	w.await("progress", func(s *fleet.Status) bool { return s.Left() <= size-reached })
	status := wait()
	first.Signal(syscall.SIGTERM)
	first.Wait()
	if status.Wait() != exit.Temporary || !strings.Contains(status.Stderr(), "no process serves the queue") {
		t.Errorf("status --wait of a worker that was stopped: %s", status.Output())
	}
	second := w.work("--chunk-size=1MiB", "--max-wait=1s", "--until-empty")
	w.await("the upload", func(s *fleet.Status) bool { return s.Active.Files > 0 })
	status = wait()
	w.gcs.ClearFaults()
	if second.Wait() != 0 {
		t.Error(second.Output())
	}
	if status.Wait() != exit.OK {
		t.Errorf("status --wait of a worker that finished: %s", status.Output())
	}
	lines := strings.TrimSpace(status.Stdout())
	last := lines[strings.LastIndexByte(lines, '\n')+1:]
	var s fleet.Status
	if err := json.Unmarshal([]byte(last), &s); err != nil || s.Type != "status" || s.Done.Files != 2 {
		t.Errorf("the last line is %s (%v)", last, err)
	}
	w.check(files)
}
