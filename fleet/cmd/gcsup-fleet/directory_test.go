//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/fleet"
	"gcsup/internal/cli/exit"
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
	if code, messages := w.run("work", "--state=gs://state-bucket/uploads", "--state-unsealed"); code != exit.Temporary || !strings.Contains(messages, "use gcsup-fleet up") {
		t.Errorf("a second worker: exit code %d: %s", code, messages)
	}
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree")
	wait := func() (cmd *exec.Cmd, out *bufio.Reader, messages *bytes.Buffer) {
		cmd, messages = w.command("status", "--wait", "--json"), new(bytes.Buffer)
		cmd.Stderr = messages
		pipe, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return cmd, bufio.NewReader(pipe), messages
	}
	progress := func(out *bufio.Reader) {
		var line struct {
			Type  string
			Files int
		}
		text, err := out.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(text, &line)
		}
		if err != nil || line.Type != "progress" || line.Files != 2 {
			t.Errorf("the first line is %s (%v)", text, err)
		}
	}
	w.await("progress", func(s *fleet.Status) bool { return s.Left() <= size-reached })
	status, out, messages := wait()
	progress(out)
	send(t, first.Process.Pid, syscall.SIGTERM)
	_, _ = first.Process.Wait()
	_, _ = io.Copy(io.Discard, out)
	_ = status.Wait()
	if code := status.ProcessState.ExitCode(); code != exit.Temporary || !strings.Contains(messages.String(), "no process serves the queue") {
		t.Errorf("status --wait of a worker that was stopped: exit code %d: %s", code, messages)
	}
	second := w.work("--chunk-size=1MiB", "--max-wait=1s", "--until-empty")
	w.await("the upload", func(s *fleet.Status) bool { return s.Active.Files > 0 })
	status, out, messages = wait()
	progress(out)
	w.gcs.ClearFaults()
	lines, err := io.ReadAll(out)
	if err != nil {
		t.Error(err)
	}
	if err := second.Wait(); err != nil {
		t.Error(err)
	}
	_ = status.Wait()
	if code := status.ProcessState.ExitCode(); code != exit.OK {
		t.Errorf("status --wait of a worker that finished: exit code %d: %s", code, messages)
	}
	lines = bytes.TrimSpace(lines)
	last := lines[bytes.LastIndexByte(lines, '\n')+1:]
	var s fleet.Status
	if err := json.Unmarshal(last, &s); err != nil || s.Type != "status" || s.Done.Files != 2 {
		t.Errorf("the last line is %s (%v)", last, err)
	}
	w.check(files)
}
