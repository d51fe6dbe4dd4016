//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fleet"
	"gcsup/internal/cli/exitcode"
)

// work starts a worker that serves the queue of the directory.
func (w *world) work(args ...string) *exec.Cmd {
	w.t.Helper()
	cmd := w.command(append([]string{"work", "--state=gs://state-bucket/uploads", "--state-unsealed", "--log=off"}, args...)...)
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// TestStatusOfWork looks at a worker that has its queue in a directory, submits to it, and waits for it
// while it is stopped, and while it ends because the queue is empty.
func TestStatusOfWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{Rate: 2 << 20})
	files := map[string][]byte{"large": w.write("large", 16<<20), "a": w.write("a", 10)}
	first := w.work()
	w.await("one worker", func(s *fleet.Status) bool { return len(s.Workers) == 1 })
	if code, messages := w.run("work", "--state=gs://state-bucket/uploads", "--state-unsealed"); code != exitcode.Temporary || !strings.Contains(messages, "use gcsup-fleet up") {
		t.Errorf("a second worker: exit code %d: %s", code, messages)
	}
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree")
	wait := func() (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
		cmd, out, messages := w.command("status", "--wait", "--json"), new(bytes.Buffer), new(bytes.Buffer)
		cmd.Stdout, cmd.Stderr = out, messages
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, out, messages
	}
	w.await("the upload", func(s *fleet.Status) bool { return s.Active.Files > 0 })
	status, _, messages := wait()
	w.await("progress", func(s *fleet.Status) bool { return s.Left() < 15<<20 })
	send(t, first.Process.Pid, syscall.SIGTERM)
	_, _ = first.Process.Wait()
	_ = status.Wait()
	if code := status.ProcessState.ExitCode(); code != exitcode.Temporary || !strings.Contains(messages.String(), "no process serves the queue") {
		t.Errorf("status --wait of a worker that was stopped: exit code %d: %s", code, messages)
	}
	second := w.work("--until-empty")
	w.await("the upload", func(s *fleet.Status) bool { return s.Active.Files > 0 })
	status, out, messages := wait()
	if err := second.Wait(); err != nil {
		t.Error(err)
	}
	_ = status.Wait()
	if code := status.ProcessState.ExitCode(); code != exitcode.OK {
		t.Errorf("status --wait of a worker that finished: exit code %d: %s", code, messages)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var line struct {
		Type  string
		Files int
	}
	if err := json.Unmarshal([]byte(lines[0]), &line); err != nil || line.Type != "progress" || line.Files != 2 {
		t.Errorf("the first line is %s (%v)", lines[0], err)
	}
	last := lines[len(lines)-1]
	var s fleet.Status
	if err := json.Unmarshal([]byte(last), &s); err != nil || s.Type != "status" || s.Done.Files != 2 {
		t.Errorf("the last line is %s (%v)", last, err)
	}
	w.check(files)
}
