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

// TestOtherEndpoint checks the exit code and the message of a worker with another endpoint than that of the files in
// the queue. The files become dead letters, and can be retried.
func TestOtherEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakegcs.Options{})
	files := map[string][]byte{"a": w.write("a", 10)}
	work := []string{"work", "--until-empty", "--max-failures=1", "--missing-for=0", "--state=gs://state-bucket/uploads", "--state-unsealed"}
	w.output("submit", "-r", w.tree+"/.", "gs://my-bucket/tree")
	other := strings.Replace(w.gcs.URL, "127.0.0.1", "localhost", 1)
	cmd := w.command(work...)
	var errs bytes.Buffer
	cmd.Env, cmd.Stderr = append(cmd.Env, "STORAGE_EMULATOR_HOST="+other), &errs
	_ = cmd.Run()
	if code, text := cmd.ProcessState.ExitCode(), errs.String(); code != exit.Data || !strings.Contains(text, fleet.ErrEndpoint.Error()) || !strings.Contains(text, other) || !strings.Contains(text, w.gcs.URL) {
		t.Errorf("exit code %d: %s", code, text)
	}
	w.output("retry", "--failed")
	if code, messages := w.run(work...); code != exit.OK {
		t.Errorf("the right worker: exit code %d: %s", code, messages)
	}
	w.check(files)
}
