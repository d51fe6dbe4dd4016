//go:build unix

package main

import (
	"bytes"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fleet"
	"gcsup/internal/cli/exit"
)

// TestOtherEndpoint checks the exit code and the message of a worker, and of a submit, with another endpoint than
// that of the files in the queue.
func TestOtherEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	files := map[string][]byte{"a": w.write("a", 10)}
	submit := []string{"submit", "-r", w.tree + "/.", "gs://my-bucket/tree"}
	work := []string{"work", "--until-empty", "--state=gs://state-bucket/uploads", "--state-unsealed"}
	w.output(submit...)
	other := strings.Replace(w.gcs.URL, "127.0.0.1", "localhost", 1)
	for _, args := range [][]string{work, submit} {
		cmd := w.command(args...)
		var errs bytes.Buffer
		cmd.Env, cmd.Stderr = append(cmd.Env, "STORAGE_EMULATOR_HOST="+other), &errs
		_ = cmd.Run()
		messages := errs.String()
		if code := cmd.ProcessState.ExitCode(); code != exit.Config || !strings.Contains(messages, fleet.ErrEndpoint.Error()) || !strings.Contains(messages, other) || !strings.Contains(messages, w.gcs.URL) {
			t.Errorf("%s: exit code %d: %s", args[0], code, messages)
		}
	}
	if code, messages := w.run(work...); code != exit.OK {
		t.Errorf("the right worker: exit code %d: %s", code, messages)
	}
	w.check(files)
}
