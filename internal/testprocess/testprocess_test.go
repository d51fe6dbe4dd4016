//go:build unix

package testprocess_test

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/internal/testprocess"
)

// failures is a TB that records failures. Fatalf ends the goroutine only in a real test.
type failures struct {
	*testing.T
	texts []string
}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}
func (f *failures) Fatalf(format string, args ...any) { f.Errorf(format, args...) }

// TestProcess checks the output, the signals and the exit codes of processes.
func TestProcess(t *testing.T) {
	t.Parallel()
	p := testprocess.Start(t, exec.Command("sh", "-c", `trap 'echo "caught $$" >&2; exit 3' TERM; echo ready 12; while :; do sleep 0.01; done`))
	if m := p.Await(`ready (\d+)\n`); m[1] != "12" || !p.Alive() {
		t.Errorf("match %q, alive %v", m, p.Alive())
	}
	p.Signal(syscall.SIGTERM)
	if m := p.Find(`caught (\d+)\n`); m == nil || m[1] != fmt.Sprint(p.PID()) {
		t.Errorf("match %q, want process %d", m, p.PID())
	}
	if code := p.Wait(); code != 3 || p.Alive() || p.Stdout() != "ready 12\n" || p.Find("x") != nil {
		t.Errorf("exit code %d: %s", code, p.Output())
	}
	killed := testprocess.Start(t, exec.Command("sleep", "1000"))
	killed.Kill()
	if code := killed.Wait(); code != -1 {
		t.Errorf("exit code %d after SIGKILL", code)
	}
}

// TestFailures checks that a process which ends without its line, or does not end, fails the test with
// its output, and that the group is killed.
func TestFailures(t *testing.T) {
	t.Parallel()
	f := &failures{T: t}
	testprocess.Start(f, exec.Command("sh", "-c", "echo other; exit 4")).Await("ready")
	if len(f.texts) != 1 || !strings.Contains(f.texts[0], "exit status 4\nother\n") {
		t.Errorf("failures %q", f.texts)
	}
	f.texts = nil
	// The child holds the output of the process, which is complete only when both have ended.
	p := testprocess.Start(f, exec.Command("sh", "-c", "trap '' QUIT; sleep 1000 & echo ready; wait"))
	p.Await("ready")
	began := time.Now()
	if code := p.WaitFor(time.Millisecond); code != -1 || len(f.texts) != 1 || !strings.Contains(f.texts[0], "did not end in 1ms: ") {
		t.Errorf("exit code %d, failures %q", code, f.texts)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the child ended after %v", took)
	}
}
