//go:build linux

package fire_test

import (
	"encoding/json"
	"time"

	"gcsup/internal/testprocess"
)

// status is the output of status --json.
type status struct {
	Tasks   int
	Workers []struct {
		PID       int
		RateLimit int64 `json:"limit_per_s"`
		Active    []struct {
			Destination string
			Files       int
		}
	}
}

func (f *fleet) status() (status, error) { return parseStatus(f.command("status", "--json")) }

// parseStatus waits for the end of status --json.
func parseStatus(p *testprocess.Process) (s status, err error) {
	out, err := result(p)
	if err == nil {
		err = json.Unmarshal([]byte(out), &s)
	}
	return s, err
}

// queued returns the number of tasks in the queue.
func (f *fire) queued() (tasks int, err error) {
	s, err := f.status()
	return s.Tasks, err
}

// settledCode is the exit code of a command that waits until all that was submitted is done.
func (f *fire) settledCode() int {
	if len(f.bad) > 0 {
		return 65
	}
	return 0
}

// untilEmpty runs another worker on a fit machine until the queue is empty, and returns its exit code.
func (f *fire) untilEmpty() (code int, text string) {
	f.t.Helper()
	args := []string{"work", "--until-empty", "--ack-wait", ackWait.String(), "--state", stateURL, "--state-key-file", f.key(), "--max-wait", "2s"}
	p := f.command(append(args, f.limits()...)...)
	code = p.WaitFor(time.Minute)
	return code, lastLine(p.Stderr())
}

// checkLost checks that a worker notices that the queue was lost.
func (f *fire) checkLost() {
	f.t.Helper()
	if code, text := f.untilEmpty(); code != 75 {
		f.t.Errorf("NATS was wiped, and work --until-empty ended with %d, want 75: %s", code, text)
	}
}

// checkCodes checks the exit codes of the commands that end when the queue is empty, and the dead
// letters.
func (f *fire) checkCodes() {
	f.t.Helper()
	want := f.settledCode()
	if code, text := f.untilEmpty(); code != want {
		f.t.Errorf("work --until-empty ended with %d, want %d: %s", code, want, text)
	}
	status := f.command("status", "--wait", "--failed", "--json")
	out, _ := result(status)
	if code := status.Wait(); code != want {
		f.t.Errorf("status --wait --failed ended with %d, want %d: %s", code, want, status.Stderr())
	}
	f.checkLetters(out)
	if f.wiped {
		want = 75
	}
	f.checkWatcher(want)
	for _, u := range f.unhealthy {
		if u.wants != 0 && !poll(100*time.Millisecond, 30*time.Second, func() bool { f.supervise(); return u.down }) {
			f.t.Errorf("a worker with %s does not end, want exit code %d", u.defect, u.wants)
		}
	}
}

// checkWatcher checks the exit code of the status --wait that began before the first worker.
func (f *fire) checkWatcher(want int) {
	f.t.Helper()
	if f.watcher == nil {
		return
	}
	if !await(30*time.Second, func() bool { return !f.watcher.Alive() }) {
		f.t.Errorf("status --wait does not end: %s", f.watcher.Stderr())
	} else if code := f.watcher.Wait(); code != want {
		f.t.Errorf("status --wait ended with %d, want %d: %s", code, want, lastLine(f.watcher.Stderr()))
	}
}
