package bucketstore_test

import (
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
)

// child starts a process that sleeps, brings it into a state, and returns its number and when it
// started.
func child(t *testing.T, state string) (pid int, started string) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	pid = cmd.Process.Pid
	_, started = bucketstore.Stat(pid)
	switch state {
	case "T":
		_ = cmd.Process.Signal(syscall.SIGSTOP)
	case "Z":
		_ = cmd.Process.Kill()
	case "":
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for now, _ := bucketstore.Stat(pid); now != state; now, _ = bucketstore.Stat(pid) {
		if state == "S" && now == "R" {
			break
		}
		runtime.Gosched()
	}
	return pid, started
}

// A process acquires the lease of another one at once if that has ended on the same machine, and
// otherwise when it has expired.
func TestEndedHolder(t *testing.T) {
	for _, test := range []struct {
		name  string
		state string
		other func(place, started *string) // changes what the lease shows
		free  bool
	}{
		{"runs", "S", nil, false},
		{"stopped", "T", nil, false},
		{"zombie", "Z", nil, true},
		{"gone", "", nil, true},
		{"number used again", "S", func(_, started *string) { *started += "0" }, true},
		{"another boot", "", func(place, _ *string) { *place = "0" + *place }, false},
		{"another PID namespace", "", func(place, _ *string) { *place = strings.Replace(*place, "/pid:[", "/pid:[1", 1) }, false},
		{"another time namespace", "", func(place, _ *string) { *place = strings.Replace(*place, "/time:[", "/time:[1", 1) }, false},
		{"not known", "", func(place, _ *string) { *place = "" }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			pid, started := child(t, test.state)
			inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
				first, second := w.start("first"), w.start("second")
				place, _, _ := bucketstore.Process(second.Store)
				if strings.Count(place, "/") != 2 {
					t.Fatalf("place %q", place)
				}
				if test.other != nil {
					test.other(&place, &started)
				}
				bucketstore.SetProcess(first.Store, place, pid, started, nil)
				take(t, first, "unsaved")
				l := take(t, first, "a")
				require.NoError(t, l.Save(t.Context(), newUpload(t, w.client, "a")))
				first.suspend()
				defer first.wake()
				locked, err := second.Locked(t.Context(), "a")
				if err != nil || locked == test.free {
					t.Errorf("Locked: %v, %v", locked, err)
				}
				if n, err := second.Sweep(t.Context(), false); err != nil || (n == 1) != test.free {
					t.Errorf("swept %d, %v", n, err)
				}
				next, err := second.Acquire(t.Context(), "a")
				switch {
				case err == nil && test.free:
				case err == nil:
					t.Error("acquired")
				case test.free || !errors.Is(err, state.ErrInUse):
					t.Error(err)
				default:
					time.Sleep(ttl + time.Second)
					next, err = second.Acquire(t.Context(), "a")
					require.NoError(t, err)
				}
				if next == nil {
					return
				}
				defer next.Release(t.Context(), nil)
				if next.Fence() <= l.Fence() {
					t.Errorf("fencing number %d after %d", next.Fence(), l.Fence())
				}
				require.NoError(t, errOf(next.Load(t.Context())))
			})
		})
	}
}

// A process does not take over from itself, nor without knowing where both are.
func TestThisProcess(t *testing.T) {
	for _, known := range []bool{true, false} {
		inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
			first, second := w.start("first"), w.start("second")
			if !known {
				bucketstore.SetProcess(first.Store, "", 0, "", nil)
				bucketstore.SetProcess(second.Store, "", 0, "", func(int) bool { return true })
			}
			take(t, first, "a")
			if err := acquire(t, second, "a"); !errors.Is(err, state.ErrInUse) {
				t.Error(err)
			}
		})
	}
}
