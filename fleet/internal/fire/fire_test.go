//go:build linux

package fire_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/internal/testprocess"
)

// TestFire uploads a tree with fleets that fail in several ways at random times. Each fleet has a
// seed that determines them. How long a takeover took, and how much was sent twice, also depends on what else the
// machine does: a fleet of which only that is wrong is tested once more, alone.
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
				burn(t, first+i, &all)
			})
		}
	})
	// No other fleet runs now.
	repeat := all.repeat
	all.alone = true
	for _, seed := range repeat {
		t.Run(fmt.Sprintf("alone, seed %d", seed), func(t *testing.T) { burn(t, seed, &all) })
	}
	t.Log(&all)
	for _, text := range all.failed {
		t.Log(text)
	}
}

// burn tests the fleet with a seed.
func burn(t *testing.T, seed uint64, all *totals) {
	if seed%upEvery == 0 {
		newUpFire(t, seed).run(all)
	} else {
		newFire(t, seed).run(all)
	}
}

// totals are the results of all fleets.
type totals struct {
	mu     sync.Mutex
	alone  bool     // the fleets run one after the other
	repeat []uint64 // seeds of the fleets that must be tested alone
	failed []string // what failed, in a line each

	fleets, events                int
	objects, lost, wrong, doubled int
	bad                           int   // files that became dead letters for the right reason
	bytes                         int64 // of the objects
	again, committed, late        int64 // bytes received twice; of these, those committed before; of these, those under way during a cut or a stop
	smallAgain                    int   // small files that were received twice
	left                          int   // saved uploads that were not deleted
	slowest                       time.Duration
	byKind                        map[kind]int
	byDefect                      map[defect]int
	hangs                         int
	cured                         int             // machines with a lasting defect that were cured
	takeovers                     []time.Duration // from a SIGKILL to the next request of another worker
}

func (a *totals) String() string {
	longest := time.Duration(0)
	if len(a.takeovers) > 0 {
		longest = slices.Max(a.takeovers)
	}
	return fmt.Sprintf(`%d fleets, %d events: %s
machines with a defect: %s; cured: %d; reads that hung: %d
%d objects: %d lost, %d doubled, %d wrong; %d bad files reported; %d saved uploads were left
%d bytes; received twice: %d; of these, committed before: %d, of which were under way at a cut or a stop: %d; small files twice: %d
%d takeovers after a SIGKILL, the longest %v (%v are allowed)
the slowest fleet took %v; tested once more, alone: %v`, a.fleets, a.events, counts(a.byKind), counts(a.byDefect), a.cured, a.hangs,
		a.objects, a.lost, a.doubled, a.wrong, a.bad, a.left,
		a.bytes, a.again, a.committed, a.late, a.smallAgain,
		len(a.takeovers), longest.Round(time.Millisecond), takeoverLimit, a.slowest.Round(time.Second), a.repeat)
}

// counts lists the numbers of a map in the order of its keys.
func counts[K ~string](of map[K]int) string {
	var texts []string
	for _, k := range slices.Sorted(maps.Keys(of)) {
		texts = append(texts, fmt.Sprintf("%d × %s", of[k], k))
	}
	return strings.Join(texts, ", ")
}

// depends reports what is wrong with a fleet, but could also come from other load of the machine. It is a failure if the
// fleet was alone; otherwise the fleet is tested once more. The caller holds a.mu.
func (a *totals) depends(f *fire, format string, args ...any) {
	f.t.Helper()
	if a.alone {
		f.t.Errorf(format, args...)
		return
	}
	f.t.Logf("tested once more, alone, because: "+format, args...)
	if !slices.Contains(a.repeat, f.seed) {
		a.repeat = append(a.repeat, f.seed)
	}
}

// list lists what failed in a fleet.
func (a *totals) list(f *fire) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, text := range f.t.failed {
		first, _, _ := strings.Cut(text, "\n")
		a.failed = append(a.failed, fmt.Sprintf("seed %d: %s", f.seed, first))
	}
}

// took records the duration of a fleet.
func (a *totals) took(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slowest = max(a.slowest, d)
}

// fire is one fleet with its failures.
type fire struct {
	*fleet
	seed      uint64
	random    *rand.Rand
	unhealthy []*unhealthy
	kinds     []kind
	events    []event
	spoils    bool // some files are bad
	hostile   hostile
	hung      []func() int         // let the reads of workers return, and count them
	hangs     int                  // reads that hung
	wiped     bool                 // NATS was wiped after the watcher began
	watcher   *testprocess.Process // status --wait; nil if there is none
	story     []string
	started   time.Time
	restored  []time.Time // ends of cuts and stops, after which delayed requests may arrive
	happened  []time.Time // all events, except the next start of a worker
	kills     []killed    // whose takeovers are measured
}

func newFire(t *testing.T, seed uint64) *fire {
	t.Logf("seed %d", seed)
	f := &fire{fleet: newFleet(t, "384KiB"), seed: seed, random: rand.New(rand.NewPCG(seed, 0))}
	f.fill(8)
	calm := seed%2 == 1
	f.choose(calm)
	var makeDisk func(string) *disk
	if slices.Contains(f.kinds, full) {
		makeDisk = func(dir string) *disk { return newDisk(t, dir) }
	}
	f.cluster = startCluster(t, []int{1, 3}[f.random.IntN(2)], makeDisk)
	clock := func() int { return 0 }
	if *clocks {
		clock = func() int { return f.random.IntN(31) - 15 }
	}
	args := []string{"--jobs", "2", "--max-wait", "2s", "--chunk-size", "1MiB", "--max-failures", "3", "--missing-for", "10s"}
	if calm {
		args[1] = "8" // so that a worker is free for each upload of a killed one
	}
	f.addWorkers(workers, clock, args...)
	if *clocks {
		f.slots[0].clock, f.slots[1].clock = -15, 15
	}
	f.plan(calm, args)
	return f
}

// fill writes the tree.
func (f *fire) fill(large int) {
	for i := range large {
		size := 2<<20 + f.random.IntN(4<<20)
		if f.random.IntN(4) == 0 {
			size += f.random.IntN(4 << 20)
		}
		f.write(fmt.Sprintf("large/%02d", i), size, f.random.Uint64())
	}
	for i := range 400 {
		f.write(fmt.Sprintf("small/%03d", i), f.random.IntN(32<<10), f.random.Uint64())
	}
}

func (f *fire) run(all *totals) {
	f.submit()
	f.started = time.Now()
	if slices.Contains(f.kinds, forged) {
		f.eavesdrop()
		f.forge()
	}
	if f.spoils {
		f.spoil()
	}
	f.watcher = f.command("status", "--wait", "--failed", "--json")
	for _, s := range f.slots[:workers] {
		f.begin(s)
	}
	f.burn()
	f.rest(2 * time.Minute)
	for _, s := range f.slots {
		if !s.down {
			f.end(s)
		}
	}
	f.judge(all)
}

// burn makes the events happen.
func (f *fire) burn() {
	for _, e := range f.events {
		await(time.Until(f.started.Add(e.at)), func() bool {
			f.supervise()
			return false
		})
		f.tell(e.text)
		if !e.harmless {
			f.happened = append(f.happened, time.Now())
		}
		e.do()
	}
	f.tell("the last event is over")
}

// rest waits until all files are uploaded or reported, and the queue is empty. The commands that wait
// for that end with the right exit codes.
func (f *fire) rest(limit time.Duration) {
	f.t.Helper()
	f.checkRefused()
	if !poll(300*time.Millisecond, limit, func() bool {
		f.supervise()
		return f.uploaded()
	}) {
		f.t.Errorf("not everything is uploaded %v after the last event", limit)
		return
	}
	f.tell("everything is uploaded")
	for _, release := range f.hung {
		f.hangs += release()
	}
	if !f.emptied() {
		return
	}
	if f.replayFinished(); !f.emptied() {
		return
	}
	f.checkCodes()
	f.tell("end")
}

// emptied waits until the queue is empty.
func (f *fire) emptied() bool {
	f.t.Helper()
	var tasks int
	var err error
	if !poll(time.Second, 2*time.Minute, func() bool {
		f.supervise()
		tasks, err = f.queued()
		return err == nil && tasks == 0
	}) {
		f.t.Errorf("everything is uploaded, and the queue still has %d tasks (%v)", tasks, err)
		return false
	}
	f.tell("the queue is empty")
	return true
}

// judge checks what the fleet has made.
func (f *fire) judge(all *totals) {
	all.took(time.Since(f.started))
	f.emulator.hurry()
	f.check(all)
	if f.t.Failed() {
		all.list(f)
		f.t.Logf("\n%s", strings.Join(f.story, "\n"))
		f.logs()
	}
}

// tell logs an event.
func (f *fire) tell(text string) {
	f.story = append(f.story, fmt.Sprintf("%s %v %s", time.Now().UTC().Format("15:04:05.000"), time.Since(f.started).Round(time.Millisecond), text))
}
