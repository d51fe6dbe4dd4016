//go:build linux

package fire_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestFire uploads a tree with fleets that fail in several ways at random times. Each fleet has a
// seed that determines them.
//
//	go test ./internal/fire -run Fire -fire-seeds 100 -fire-seed 7 -fire-clocks -v
func TestFire(t *testing.T) {
	t.Parallel()
	first := *firstSeed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	var all totals
	t.Run("fleets", func(t *testing.T) {
		for i := range uint64(*seeds) {
			t.Run(fmt.Sprintf("seed %d", first+i), func(t *testing.T) {
				t.Parallel()
				newFire(t, first+i).run(&all)
			})
		}
	})
	t.Log(&all)
}

// totals are the results of all fleets.
type totals struct {
	mu sync.Mutex

	fleets, events                int
	objects, lost, wrong, doubled int
	bytes                         int64 // of the objects
	again, committed, late        int64 // bytes received twice; of these, those committed before; of these, those under way during a cut or a stop
	smallAgain                    int   // small files that were received twice
	left                          int   // saved uploads that were not deleted
	slowest                       time.Duration
	byKind                        map[kind]int
}

func (a *totals) String() string {
	var kinds []string
	for k, n := range a.byKind {
		kinds = append(kinds, fmt.Sprintf("%d × %s", n, k))
	}
	slices.Sort(kinds)
	return fmt.Sprintf(`%d fleets, %d events: %s
%d objects: %d lost, %d doubled, %d wrong; %d saved uploads were left
%d bytes; received twice: %d; of these, committed before: %d, of which were under way at a cut or a stop: %d; small files twice: %d
the slowest fleet took %v`, a.fleets, a.events, strings.Join(kinds, ", "), a.objects, a.lost, a.doubled, a.wrong, a.left,
		a.bytes, a.again, a.committed, a.late, a.smallAgain, a.slowest.Round(time.Second))
}

// took records the duration of a fleet.
func (a *totals) took(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slowest = max(a.slowest, d)
}

// kind is a kind of failure.
type kind string

const (
	kill    kind = "worker killed"
	stop    kind = "worker stopped past its lease"
	cut     kind = "link cut for 12 s"
	leader  kind = "stream leader killed"
	wipe    kind = "NATS wiped"
	restart kind = "emulator killed and restarted"
)

const cutLength = 12 * time.Second

// event is a failure at a time, or the end of one that lasts.
type event struct {
	at   time.Duration
	text string
	do   func()
}

// fire is one fleet with its failures.
type fire struct {
	*fleet
	random   *rand.Rand
	events   []event
	kinds    []kind
	story    []string
	started  time.Time
	restored []time.Time // ends of cuts and stops, after which delayed requests may arrive
}

func newFire(t *testing.T, seed uint64) *fire {
	t.Logf("seed %d", seed)
	f := &fire{fleet: newFleet(t, "384KiB"), random: rand.New(rand.NewPCG(seed, 0))}
	for i := range 12 {
		size := 2<<20 + f.random.IntN(4<<20)
		if f.random.IntN(4) == 0 {
			size += f.random.IntN(4 << 20)
		}
		f.write(fmt.Sprintf("large/%02d", i), size, f.random.Uint64())
	}
	for i := range 600 {
		f.write(fmt.Sprintf("small/%03d", i), f.random.IntN(32<<10), f.random.Uint64())
	}
	clock := func() int { return 0 }
	if *clocks {
		clock = func() int { return f.random.IntN(31) - 15 }
	}
	f.addWorkers(workers, clock, "--jobs", "2", "--max-wait", "2s", "--chunk-size", "1MiB")
	if *clocks {
		f.slots[0].clock, f.slots[1].clock = -15, 15
	}
	f.plan()
	return f
}

// plan chooses the events.
func (f *fire) plan() {
	for range 2 {
		f.add(kill)
	}
	f.add([]kind{stop, cut}[f.random.IntN(2)])
	for range 3 {
		f.add([]kind{kill, stop, stop, cut, leader, leader, wipe, restart}[f.random.IntN(8)])
	}
	slices.SortStableFunc(f.events, func(a, b event) int { return int(a.at - b.at) })
}

// add adds an event and its end.
func (f *fire) add(k kind) {
	f.kinds = append(f.kinds, k)
	s := f.slots[f.random.IntN(workers)]
	at := time.Duration(f.random.Int64N(int64(12 * time.Second)))
	next := func(after time.Duration, text string, do func()) {
		f.events = append(f.events, event{at + after, text, do})
	}
	machine := fmt.Sprintf("machine %d: ", s.number)
	pause := time.Duration(f.random.Int64N(int64(3 * time.Second)))
	switch k {
	case kill:
		next(0, machine+"SIGKILL", s.kill)
		next(pause, machine+"next worker", func() {
			if s.down {
				f.begin(s)
			}
		})
	case stop:
		next(0, machine+"SIGSTOP", func() { s.worker.signal(syscall.SIGSTOP) })
		next(ackWait+pause, machine+"SIGCONT", func() { f.resume(s) })
	case cut:
		reset := f.random.IntN(2) == 0
		next(0, machine+"links cut", s.cut)
		next(cutLength, fmt.Sprintf("%slinks restored, reset %v", machine, reset), func() { f.restore(s, reset) })
	case leader:
		var n *node
		next(0, "stream leader: SIGKILL", func() {
			if n = f.cluster.leader(); n != nil {
				n.process.kill()
			}
		})
		next(pause, "stream leader: started again", func() {
			if n != nil && !n.process.alive() {
				f.cluster.start(n)
			}
		})
	case wipe:
		next(0, "NATS wiped", f.cluster.wipe)
		next(0, "tree submitted again", func() {
			f.revive() // submit lists the bucket
			f.submit()
		})
	case restart:
		next(0, "emulator: SIGKILL", f.emulator.kill)
		next(pause/2, "emulator: started again", f.revive)
	}
}

// revive starts the emulator if it was killed.
func (f *fire) revive() {
	if !f.emulator.process.alive() {
		f.emulator.start()
	}
}

func (f *fire) resume(s *slot) {
	s.worker.signal(syscall.SIGCONT)
	f.restored = append(f.restored, time.Now())
}

func (f *fire) restore(s *slot, reset bool) {
	s.restore(reset)
	f.restored = append(f.restored, time.Now())
}

func (f *fire) run(all *totals) {
	f.submit()
	f.started = time.Now()
	for _, s := range f.slots {
		f.begin(s)
	}
	for _, e := range f.events {
		await(time.Until(f.started.Add(e.at)), func() bool {
			f.supervise()
			return false
		})
		f.tell(e.text)
		e.do()
	}
	f.tell("the last event is over")
	f.rest(2 * time.Minute)
	f.tell("end")
	all.took(time.Since(f.started))
	f.emulator.hurry()
	f.check(all)
	if f.t.Failed() {
		f.t.Logf("\n%s", strings.Join(f.story, "\n"))
		f.logs()
	}
}

// tell logs an event.
func (f *fire) tell(text string) {
	f.story = append(f.story, fmt.Sprintf("%s %v %s", time.Now().UTC().Format("15:04:05.000"), time.Since(f.started).Round(time.Millisecond), text))
}
