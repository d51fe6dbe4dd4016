//go:build unix

package e2e_test

import (
	"crypto/rand"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

var (
	sharedRuns = flag.Int("shared-runs", testsize.Full(3, 1), "how often processes share a store in a bucket")
	sharedSeed = flag.Uint64("shared-seed", 0, "of the first run, the next one has the next; 0 takes that of testsize.Seed")
)

const (
	sharedUploads   = 20
	sharedProcesses = 4
	sharedLease     = 2 * time.Second
	// takeoverMargin is the longest time from the end of a lease to its takeover.
	takeoverMargin = 3 * time.Second
)

// TestShared has several processes share a store in a bucket. They work on the same
// uploads, and are killed and stopped at seeded moments, with faults of the service in
// both buckets. It checks the objects, the requests and the leases.
//
//	go test ./internal/e2e -run Shared -shared-runs 100 -shared-seed 7 -v
func TestShared(t *testing.T) {
	t.Parallel()
	first := *sharedSeed
	if first == 0 {
		first = testsize.Seed(t)
	}
	var all sharedTotals
	for i := range uint64(*sharedRuns) {
		t.Run(fmt.Sprintf("seed %d", first+i), func(t *testing.T) {
			r := newSharedRun(t, first+i)
			for range sharedUploads {
				size := 2*mib + r.random.Int64N(4*mib)
				if r.random.oneIn(testsize.Full(1, 8)) {
					size = 9*mib + r.random.Int64N(3*mib)
				}
				if r.random.oneIn(8) {
					size += r.random.Int64N(12 * mib)
				}
				r.addSource(size)
			}
			r.service.plant(r.faults()...)
			r.run()
			if r.check(&all); t.Failed() {
				t.Logf("\n%s", r.story())
			}
		})
	}
	t.Log(&all)
}

// TestSharedStopped stops a process for longer than its lease. If another process resumed the upload meanwhile, the first
// one begins no request when it continues. Otherwise it finishes the upload.
func TestSharedStopped(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{true, false} {
		t.Run(fmt.Sprintf("another process resumes the upload: %v", taken), func(t *testing.T) {
			t.Parallel()
			r := newSharedRun(t, 1)
			path := r.addSource(10 * mib)
			first := r.begin("cp", "--chunk-size=1MiB", path, "gs://demo", "--limit-rate=4MiB")
			if !until(first.Done(), time.Millisecond, func() bool { return r.service.committed(1) >= 2*mib }) {
				t.Fatal(first.output())
			}
			first.stop()
			time.Sleep(sharedLease / 2) // the second one must wait only for the rest of the lease
			if taken {
				second := r.begin("cp", "--chunk-size=1MiB", path, "gs://demo")
				if second.Wait() != 0 {
					t.Fatal(second.output())
				}
				if l := second.result(); l.ResumedFrom < 2*mib || l.BytesResent != 0 {
					t.Errorf("the second: %+v", l)
				}
			}
			time.Sleep(time.Until(first.stops[0].from.Add(sharedLease + sharedLease/2)))
			first.wake()
			if want := map[bool]string{true: "in_use", false: "ok"}[taken]; first.Wait() < 0 || first.result().kind() != want {
				t.Error(first.output())
			}
			var all sharedTotals
			if r.check(&all); all.sessions != 1 {
				t.Errorf("%d sessions, want 1", all.sessions)
			}
		})
	}
}

// sharedTotals are the results of all runs.
type sharedTotals struct {
	runs, objects                  int
	processes, kills, stops, fault int
	inUse                          int // uploads of a process that ended because another one works on them
	takeovers                      int // of a lease whose holder was killed or stopped
	slowest                        time.Duration
	sizes, again                   int64 // bytes: of the objects, and received twice
	interrupted                    int   // data requests that were cut, refused or overtaken
	straddling                     int   // requests that were under way when their process was stopped, and arrived when it continued
	sessions, unused               int
	empty                          int // objects in the state bucket with the lease of a killed process, and no upload
}

func (s *sharedTotals) String() string {
	return fmt.Sprintf(`%d runs, %d processes, %d killed, %d stopped, %d requests with a fault
%d objects, %d bytes; %d sessions, of which %d were not used; %d bytes received twice, in %d interrupted requests
%d takeovers; the last one %v after the end of the lease; %d uploads ended with in_use
%d requests under way at a stop arrived after it; %d leases of killed processes without an upload`,
		s.runs, s.processes, s.kills, s.stops, s.fault, s.objects, s.sizes, s.sessions, s.unused, s.again, s.interrupted,
		s.takeovers, s.slowest.Round(time.Millisecond), s.inUse, s.straddling, s.empty)
}

// sharedRun is one run.
type sharedRun struct {
	t       *testing.T
	random  chance
	dir     string
	service *leaseService
	sources map[string]string // the paths, by object
	sizes   map[string]int64
	// noClobber means that an existing object is not uploaded again.
	noClobber    bool
	kills, stops int // the remaining ones, which are not planned yet

	slots     [sharedProcesses]*sharedProcess
	pause     [sharedProcesses]time.Time // the next process starts then
	processes []*sharedProcess
	objects   map[string]string // by the ID of the upload
	ids       map[string]string // the other way round
	lags      []span            // in which this process did not run
}

// sharedProcess is a process of a run.
type sharedProcess struct {
	*child
	number int
	log    string        // its log file
	act    time.Time     // when it will be killed or stopped, or continues; zero if that is not planned
	victim bool          // it will be killed
	length time.Duration // of the next stop
	stops  []span
	ended  time.Time // when the test noticed the end; zero while it runs

	logged    string // its log file
	exchanges []clientExchange
}

// span is a time in which a process is stopped. to is zero while the process is
// stopped.
type span struct{ from, to time.Time }

func newSharedRun(t *testing.T, seed uint64) *sharedRun {
	t.Helper()
	random := seeded(t, seed)
	r := &sharedRun{
		t: t, random: random, dir: t.TempDir(), service: newLeaseService(t), objects: map[string]string{}, ids: map[string]string{},
		sources: map[string]string{}, sizes: map[string]int64{}, noClobber: random.oneIn(2),
		kills: testsize.Full(4, 2) + random.IntN(3), stops: testsize.Full(4, 2) + random.IntN(3),
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "key"), key, 0o600))
	return r
}

// addSource adds a file and returns its path.
func (r *sharedRun) addSource(size int64) string {
	r.t.Helper()
	name := fmt.Sprintf("o%02d", len(r.sources))
	r.sources[name], r.sizes[name] = filepath.Join(r.dir, name), size
	source(r.t, r.sources[name], size, r.random.Uint64())
	return r.sources[name]
}

// faults returns a plan for both buckets.
func (r *sharedRun) faults() (plan []faults.Fault) {
	add := func(bucket string, ops ...faults.Op) {
		do := faults.Action{Effect: faults.EffectLoseReply}
		switch r.random.IntN(6) {
		case 0, 1:
			do = faults.Action{Effect: faults.EffectStatus, Status: 503, Early: r.random.oneIn(2)}
		case 2:
			do = faults.Action{Effect: faults.EffectStatus, Status: 429}
		case 3:
			do = faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: 256 << 10 * r.random.Int64N(5)}
		case 4:
			do = faults.Action{Effect: faults.EffectCutRequest, Bytes: r.random.Int64N(1 << 20)}
		}
		if bucket == stateBucket && do.Effect == faults.EffectStatusAfter {
			do.Bytes = 0
		}
		plan = append(plan, faults.Fault{Match: faults.Match{Bucket: bucket, Op: pick(r.random, ops...)}, Skip: r.random.IntN(15), Do: do})
	}
	for range 20 {
		add("demo", faults.OpStart, faults.OpPut, faults.OpPut, faults.OpPut, faults.OpQuery, faults.OpFinalize)
	}
	for range 12 {
		add(stateBucket, faults.OpInsert, faults.OpInsert, faults.OpGet, faults.OpRead, faults.OpDelete, faults.OpList, faults.OpBucketGet)
	}
	return plan
}

// run runs processes until all objects exist, and finishes the uploads that killed processes left in the store.
func (r *sharedRun) run() {
	r.t.Helper()
	last := time.Now()
	for deadline := time.Now().Add(2 * time.Minute); len(r.missing()) > 0; time.Sleep(5 * time.Millisecond) {
		for i := range r.slots {
			r.step(i)
		}
		if now := time.Now(); now.Sub(last) > 50*time.Millisecond {
			r.lags = append(r.lags, span{last, now})
		}
		last = time.Now()
		if time.Now().After(deadline) {
			r.t.Fatalf("not all uploads are finished after two minutes\n%s", r.story())
		}
	}
	for _, p := range r.processes {
		p.wake()
	}
	for _, p := range r.processes {
		r.wait(p)
	}
	for range 5 {
		p := r.begin("resume", "--all")
		if r.wait(p); p.Wait() == 0 {
			break
		}
	}
	list := run(r.t, environment(), r.shared(0, "uploads", "list")...)
	if list.Wait() != 0 || list.Stdout() != "" || !strings.Contains(list.Stderr(), "no saved uploads") {
		r.t.Errorf("uploads are left in the store: %s", list.output())
	}
}

// lag returns how long this process did not run between two times, because the
// machine was busy. The other processes may also have been delayed.
func (r *sharedRun) lag(from, to time.Time) (sum time.Duration) {
	for _, l := range r.lags {
		if l.from.Before(to) && l.to.After(from) {
			sum += l.to.Sub(l.from)
		}
	}
	return sum
}

// missing returns the paths whose objects do not exist.
func (r *sharedRun) missing() (paths []string) {
	for name, path := range r.sources {
		if _, ok := r.service.gcs.Object("demo", name); !ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// step takes the actions that are due in a slot.
func (r *sharedRun) step(i int) {
	p, now := r.slots[i], time.Now()
	switch {
	case p == nil:
		if now.After(r.pause[i]) {
			r.slots[i] = r.start()
		}
	case !p.Alive():
		p.ended = now
		r.slots[i], r.pause[i] = nil, now.Add(r.random.below(200*time.Millisecond))
	case p.act.IsZero() || now.Before(p.act):
	case p.stopped():
		p.wake()
		r.plan(p)
	case p.victim:
		p.kill()
	default:
		p.stop()
		p.act = now.Add(p.length)
	}
}

// start starts a process with some of the uploads.
func (r *sharedRun) start() *sharedProcess {
	args, paths := []string{"resume", "--all"}, r.missing()
	if r.noClobber {
		paths = slices.Collect(maps.Values(r.sources))
	}
	if len(paths) > 0 && !r.random.oneIn(3) {
		args = []string{"cp"}
		if r.noClobber {
			args = append(args, "--no-clobber")
		}
		slices.Sort(paths)
		r.random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		args = append(append(args, paths[:min(len(paths), 6)]...), "gs://demo")
	}
	p := r.begin(append(args, "--chunk-size=1MiB", "--limit-rate=10MiB")...)
	r.plan(p)
	return p
}

// begin starts a process.
func (r *sharedRun) begin(args ...string) *sharedProcess {
	r.t.Helper()
	p := &sharedProcess{number: len(r.processes) + 1}
	p.log = filepath.Join(r.dir, fmt.Sprintf("log%d", p.number))
	args = append(args, "--json", "--log-file="+p.log, "--max-wait=200ms", "--retry-for=1m")
	p.child = run(r.t, environment(), r.shared(p.number, args...)...)
	r.processes = append(r.processes, p)
	return p
}

// shared returns the arguments of a process that uses the store.
func (r *sharedRun) shared(process int, args ...string) []string {
	return append(args, "--state=gs://"+stateBucket+"/uploads", "--state-key-file="+filepath.Join(r.dir, "key"), "--state-lease="+sharedLease.String(),
		"--endpoint="+r.service.url, fmt.Sprintf("--additional-headers=X-Process=%d", process))
}

// plan chooses what happens to a process next.
func (r *sharedRun) plan(p *sharedProcess) {
	p.act = time.Time{}
	if r.random.oneIn(4) {
		return
	}
	left := &r.stops
	if p.victim = r.random.oneIn(2); p.victim {
		left = &r.kills
	}
	if *left == 0 {
		return
	}
	*left--
	p.act = time.Now().Add(r.random.below(2 * time.Second))
	p.length = r.random.below(sharedLease)
	if !r.random.oneIn(4) { // most stops last longer than the lease
		p.length += sharedLease
	}
}

func (p *sharedProcess) stopped() bool {
	return len(p.stops) > 0 && p.stops[len(p.stops)-1].to.IsZero()
}

func (p *sharedProcess) stop() {
	p.Signal(syscall.SIGSTOP)
	p.stops = append(p.stops, span{from: time.Now()})
}

// wake continues the process if it is stopped.
func (p *sharedProcess) wake() {
	if p.stopped() {
		p.stops[len(p.stops)-1].to = time.Now()
		p.Signal(syscall.SIGCONT)
	}
}

// wait waits for the end of a process.
func (r *sharedRun) wait(p *sharedProcess) {
	r.t.Helper()
	select {
	case <-p.Done():
		if p.ended.IsZero() {
			p.ended = time.Now()
		}
	case <-time.After(time.Minute):
		p.Signal(syscall.SIGQUIT)
		r.t.Fatalf("process %d does not end\n%s\n%s", p.number, p.output(), r.story())
	}
}

// story returns the actions of the processes, for a failed test.
func (r *sharedRun) story() string {
	var b strings.Builder
	start := r.processes[0].began
	at := func(t time.Time) time.Duration { return t.Sub(start).Round(time.Millisecond) }
	for _, p := range r.processes {
		fmt.Fprintf(&b, "%d: %v %q", p.number, at(p.began), p.Args()[1:3])
		for _, s := range p.stops {
			fmt.Fprintf(&b, " stopped %v to %v", at(s.from), at(s.to))
		}
		if !p.killed.IsZero() {
			fmt.Fprintf(&b, " killed %v", at(p.killed))
		}
		if !p.Alive() {
			fmt.Fprintf(&b, " ended %v with %d", at(p.ended), p.Wait())
		}
		b.WriteByte('\n')
	}
	b.WriteString(r.service.story(start))
	return b.String()
}
