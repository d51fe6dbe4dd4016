//go:build linux

package fire_test

import (
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"gcsup/fakegcs/faults"
)

// kind is a kind of failure.
type kind string

const (
	kill    kind = "worker killed"
	stop    kind = "worker stopped past its lease"
	cut     kind = "links cut for 12 s"
	lost    kind = "link to the queue lost past the ack wait"
	leader  kind = "stream leader killed"
	wipe    kind = "NATS wiped"
	full    kind = "full disk"
	restart kind = "emulator killed and restarted"
	outage  kind = "writes answered with 503"
	hang    kind = "reads that hang"
	forged  kind = "forged tasks"
	replay  kind = "old messages published again"
)

const cutLength = 12 * time.Second

// calmFor is the time until the uploads of the first workers that are killed in a calm fleet are taken
// over.
const calmFor = 13 * time.Second

// event is a failure at a time, or the end of one that lasts.
type event struct {
	at       time.Duration
	text     string
	harmless bool // it is the start of a worker, which disturbs no takeover
	do       func()
}

// choose chooses the kinds of the events. A calm fleet begins with workers that are killed, and all
// other events happen when their uploads were taken over.
func (f *fire) choose(calm bool) {
	pick := func(from ...kind) { f.kinds = append(f.kinds, from[f.random.IntN(len(from))]) }
	f.kinds = []kind{kill}
	pick(stop, cut, lost, lost)
	pick(outage, full, lost, kill)
	if !calm {
		for range 2 {
			pick(kill, stop, cut, lost, leader, leader, wipe, restart, outage, full, hang, hang, hang)
		}
	}
	wiped := slices.Contains(f.kinds, wipe) // no dead letter survives it
	f.spoils = f.random.IntN(2) == 0 && !wiped
	if f.random.IntN(2) == 0 && !wiped {
		f.kinds = append(f.kinds, forged, replay)
	}
}

// plan decides when the events happen, and adds unhealthy machines.
func (f *fire) plan(calm bool, args []string) {
	within := 12 * time.Second
	for i, k := range f.kinds {
		from := time.Duration(0)
		if calm {
			from, within = calmFor, 5*time.Second
			if i == 0 {
				from, within = 2300*time.Millisecond, time.Second // after its second beat
			}
		}
		f.add(k, from+time.Duration(f.random.Int64N(int64(within))), calm && i == 0)
	}
	if !calm {
		d := f.oneOf(slices.Sorted(maps.Keys(lasting)))
		f.admit(f.addUnhealthy(d, args...), 0)
	}
	if f.random.IntN(2) == 0 {
		at := time.Duration(f.random.Int64N(int64(within)))
		if calm {
			at += calmFor
		}
		f.admit(f.addUnhealthy(f.oneOf(slices.Sorted(maps.Keys(fatal))), args...), at)
	}
	slices.SortStableFunc(f.events, func(a, b event) int { return int(a.at - b.at) })
}

func (f *fire) oneOf(d []defect) defect { return d[f.random.IntN(len(d))] }

// admit adds the start of an unhealthy machine, and maybe its cure.
func (f *fire) admit(u *unhealthy, at time.Duration) {
	f.unhealthy = append(f.unhealthy, u)
	text := fmt.Sprintf("machine %d: ", u.number)
	f.events = append(f.events, event{at, text + string(u.defect), false, func() {
		if u.defect == otherKey { // otherwise its key could become that of the fleet
			poll(100*time.Millisecond, time.Minute, func() bool {
				_, err := f.emulator.object("state", "uploads/fleet-key")
				return err == nil
			})
		}
		f.begin(u.slot)
	}})
	if _, lasts := lasting[u.defect]; lasts && f.random.IntN(2) == 0 {
		at += 3*time.Second + time.Duration(f.random.Int64N(int64(9*time.Second)))
		f.events = append(f.events, event{at, text + "cured", false, func() { f.cure(u) }})
	}
}

// add adds an event and its end. An undisturbed kill is one for which the takeover is measured.
func (f *fire) add(k kind, at time.Duration, undisturbed bool) {
	s := f.slots[f.random.IntN(workers)]
	next := func(after time.Duration, text string, do func()) {
		f.events = append(f.events, event{at + after, text, false, do})
	}
	machine := fmt.Sprintf("machine %d: ", s.number)
	pause := time.Duration(f.random.Int64N(int64(3 * time.Second)))
	switch k {
	case kill:
		next(0, machine+"SIGKILL", func() {
			if undisturbed {
				s = f.busiest()
				f.tell(fmt.Sprintf("it is machine %d", s.number))
				f.noteKill(s)
			}
			s.kill()
		})
		next(pause, machine+"next worker", func() {
			if s.down {
				f.begin(s)
			}
		})
		f.events[len(f.events)-1].harmless = true
	case stop:
		next(0, machine+"SIGSTOP", func() { s.worker.Signal(syscall.SIGSTOP) })
		next(ackWait+pause, machine+"SIGCONT", func() { f.resume(s) })
	case cut:
		reset := f.random.IntN(2) == 0
		next(0, machine+"links cut", s.cut)
		next(cutLength, fmt.Sprintf("%slinks restored, reset %v", machine, reset), func() { f.restore(s, reset) })
	case lost:
		reset := f.random.IntN(2) == 0
		next(0, machine+"links to NATS cut", s.cutNATS)
		next(ackWait+2*time.Second+pause, fmt.Sprintf("%slinks to NATS restored, reset %v", machine, reset), func() { s.restoreNATS(reset) })
	case leader:
		var n *node
		next(0, "stream leader: SIGKILL", func() {
			if n = f.cluster.leader(); n != nil {
				n.process.Kill()
			}
		})
		next(pause, "stream leader: started again", func() {
			if n != nil && !n.process.Alive() {
				f.cluster.start(n)
			}
		})
	case wipe:
		next(0, "NATS wiped", func() {
			// Otherwise the watcher could begin after it, and not know that a queue was lost.
			poll(100*time.Millisecond, time.Minute, func() bool { return f.watcher.Stdout() != "" || !f.watcher.Alive() })
			f.wiped = f.wiped || f.watcher.Alive()
			f.cluster.wipe()
		})
		next(0, "tree submitted again", func() {
			f.revive() // submit lists the bucket
			f.checkLost()
			f.submit()
		})
	case full:
		n := f.cluster.nodes[f.random.IntN(len(f.cluster.nodes))]
		if n.disk == nil {
			return
		}
		// A NATS server stops using its disk if it is full. Its operator starts it again.
		next(0, n.name+": disk full", n.disk.fill)
		next(3*time.Second+pause, n.name+": disk free, and started again", func() {
			n.disk.free()
			f.cluster.start(n)
		})
	case restart:
		next(0, "emulator: SIGKILL", f.emulator.kill)
		next(pause/2, "emulator: started again", f.revive)
	case outage:
		ops := []faults.Op{faults.OpInsert}
		if f.random.IntN(2) == 0 {
			ops = append(ops, faults.OpStart, faults.OpPut, faults.OpFinalize)
		}
		next(0, fmt.Sprintf("service: 503 to %v", ops), func() { f.emulator.refuseWrites(ops...) })
		next(4*time.Second+2*pause, "service: writes succeed", f.emulator.allowWrites)
	case hang:
		next(-at/2, "reads of large files hang", f.hang) // most files are still sent
	case replay:
		next(0, "hostile: old messages", f.replayAll)
	case forged: // before the first worker
	}
}

// busiest returns the machine whose worker has sent the most.
func (f *fire) busiest() *slot {
	return slices.MaxFunc(f.slots[:workers], func(a, b *slot) int { return int(a.gcs.up.Load() - b.gcs.up.Load()) })
}

// revive starts the emulator if it was killed.
func (f *fire) revive() {
	if !f.emulator.process.Alive() {
		f.emulator.start()
	}
}

func (f *fire) resume(s *slot) {
	s.worker.Signal(syscall.SIGCONT)
	f.restored = append(f.restored, time.Now())
}

func (f *fire) restore(s *slot, reset bool) {
	s.restore(reset)
	f.restored = append(f.restored, time.Now())
}
