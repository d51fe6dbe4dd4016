//go:build unix

package main

import (
	"bytes"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fleet/internal/fleet"
	"gcsup/internal/cli/exit"
)

// TestOtherEndpoint checks the exit code and the message of a submit, and of a worker, with another endpoint than
// that of the files in the queue. The files of the worker become dead letters, and can be retried.
func TestOtherEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	files := map[string][]byte{"a": w.write("a", 10)}
	submit := []string{"submit", "-r", w.tree + "/.", "gs://my-bucket/tree"}
	work := []string{"work", "--until-empty", "--tries=1", "--missing-for=0", "--state=gs://state-bucket/uploads", "--state-unsealed"}
	w.output(submit...)
	other := strings.Replace(w.gcs.URL, "127.0.0.1", "localhost", 1)
	for _, c := range []struct {
		args []string
		want int
	}{{submit, exit.Config}, {work, exit.Data}} {
		cmd := w.command(c.args...)
		var errs bytes.Buffer
		cmd.Env, cmd.Stderr = append(cmd.Env, "STORAGE_EMULATOR_HOST="+other), &errs
		_ = cmd.Run()
		messages := errs.String()
		if code := cmd.ProcessState.ExitCode(); code != c.want || !strings.Contains(messages, fleet.ErrEndpoint.Error()) || !strings.Contains(messages, other) || !strings.Contains(messages, w.gcs.URL) {
			t.Errorf("%s: exit code %d: %s", c.args[0], code, messages)
		}
	}
	w.output("retry", "--failed")
	if code, messages := w.run(work...); code != exit.OK {
		t.Errorf("the right worker: exit code %d: %s", code, messages)
	}
	w.check(files)
}
