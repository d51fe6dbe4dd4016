//go:build linux

package fire_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
)

// upEvery is how many fleets there are for each one of gcsup-fleet up.
const upEvery = 8

// upFire is a fleet of gcsup-fleet up with its failures. The queue is on a small disk. The workers are
// processes of gcsup-fleet up.
type upFire struct {
	*fire
	wrote bool // a command wrote to the queue while the disk was full
}

func newUpFire(t *testing.T, seed uint64) *upFire {
	t.Logf("seed %d", seed)
	f := &upFire{fire: &fire{fleet: newFleet(t, "384KiB"), seed: seed, random: rand.New(rand.NewPCG(seed, 0))}}
	f.fire.fill(6)
	volume := filepath.Join(f.dir, "volume")
	f.disk = newDisk(t, volume)
	f.fleetDir = filepath.Join(volume, "fleet")
	f.spoils = f.random.IntN(2) == 0
	f.kinds = []kind{full, kill, []kind{kill, restart, outage}[f.random.IntN(3)]}
	for _, k := range f.kinds {
		f.add(k, time.Duration(f.random.Int64N(int64(10*time.Second))))
	}
	slices.SortStableFunc(f.events, func(a, b event) int { return int(a.at - b.at) })
	return f
}

// add adds an event and its end.
func (f *upFire) add(k kind, at time.Duration) {
	next := func(after time.Duration, text string, do func()) {
		f.events = append(f.events, event{at + after, text, false, do})
	}
	pause := time.Duration(f.random.Int64N(int64(4 * time.Second)))
	which := f.random.IntN(workers)
	switch k {
	case kill:
		next(0, "a worker: SIGKILL", func() { f.killWorker(which) })
	case full:
		if f.disk == nil {
			return
		}
		next(0, "disk full", f.disk.fill)
		next(time.Second, "a command writes to the queue", func() {
			f.wrote = true
			_, _ = result(f.command("limit", "1GiB")) // it may fail
		})
		next(3*time.Second+pause, "disk free", f.disk.free)
	case restart:
		next(0, "emulator: SIGKILL", f.emulator.kill)
		next(pause/2, "emulator: started again", f.revive)
	case outage:
		next(0, "service: 503 to writes", func() {
			f.emulator.refuseWrites(faults.OpInsert, faults.OpStart, faults.OpPut, faults.OpFinalize)
		})
		next(4*time.Second+pause, "service: writes succeed", f.emulator.allowWrites)
	}
}

// killWorker sends SIGKILL to a worker, which gcsup-fleet up starts again.
func (f *upFire) killWorker(which int) {
	s, err := f.status()
	if err != nil {
		f.tell(fmt.Sprintf("no status, and therefore no process: %v", err))
	} else if n := len(s.Workers); n > 0 {
		_ = syscall.Kill(s.Workers[which%n].PID, syscall.SIGKILL)
	}
}

func (f *upFire) run(all *totals) {
	f.submit()
	f.started = time.Now()
	if f.spoils {
		f.spoil()
	}
	f.startUp()
	f.started = time.Now()
	f.burn()
	f.rest(2 * time.Minute)
	f.up.Signal(syscall.SIGTERM)
	if code := f.up.WaitFor(time.Minute); code != 0 {
		f.t.Errorf("gcsup-fleet up ended with %d after SIGTERM", code)
	}
	if f.wrote && !strings.Contains(f.upLog(), "no space") {
		f.t.Error("the disk was full, and gcsup-fleet up did not report it")
	}
	f.judge(all)
}

// startUp starts gcsup-fleet up, and waits until its workers run.
func (f *fleet) startUp() {
	f.t.Helper()
	if f.up != nil {
		f.upLogs = append(f.upLogs, f.up.Stderr())
	}
	args := []string{"up", "--workers", fmt.Sprint(workers), "--ack-wait", ackWait.String(), "--state", stateURL, "--state-key-file", f.key(),
		"--jobs", "2", "--max-wait", "2s", "--chunk-size", "1MiB", "--missing-for", "10s"}
	f.up = f.command(append(args, f.limits()...)...)
	f.up.Find("workers run")
}

// superviseUp starts gcsup-fleet up again if it ended with an exit code after which a supervisor
// does that.
func (f *fleet) superviseUp() {
	if f.up == nil || f.up.Alive() {
		return
	}
	if code := f.up.Wait(); code != 74 && code != 75 {
		f.t.Errorf("gcsup-fleet up ended with %d: %s", code, lastLine(f.up.Stderr()))
	}
	f.startUp()
}

// upLog returns what gcsup-fleet up and its workers printed.
func (f *fleet) upLog() string {
	if f.up == nil {
		return ""
	}
	return strings.Join(append(slices.Clone(f.upLogs), f.up.Stderr()), "-- started again --\n")
}
