//go:build unix

package e2e_test

import (
	"bytes"
	"crypto/rand"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
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
			newSharedRun(t, first+i).run(&all)
		})
	}
	t.Log(&all)
}

// sharedTotals are the results of all runs.
type sharedTotals struct {
	runs, objects, wrong           int
	processes, kills, stops, fault int
	inUse                          int // uploads of a process that ended because another one works on them
	takeovers, late                int // of a lease whose holder was killed or stopped
	slowest                        time.Duration
	sizes, again, committedAgain   int64 // bytes: of the objects, received twice, and sent again although they were committed
	interrupted                    int   // data requests that were cut, refused or overtaken
	straddling                     int   // requests that were under way when their process was stopped, and arrived when it continued
	sessions, unused               int
	empty                          int // objects in the state bucket with the lease of a killed process, and no upload
}

func (s *sharedTotals) String() string {
	return fmt.Sprintf(`%d runs, %d processes, %d killed, %d stopped, %d requests with a fault
%d objects, %d wrong; %d sessions, of which %d were not used
%d takeovers, %d late; the last one %v after the end of the lease; %d uploads ended with in_use
%d bytes; committed bytes sent again: %d; received twice: %d, in %d interrupted requests
%d requests under way at a stop arrived after it; %d leases of killed processes without an upload`,
		s.runs, s.processes, s.kills, s.stops, s.fault, s.objects, s.wrong, s.sessions, s.unused,
		s.takeovers, s.late, s.slowest.Round(time.Millisecond), s.inUse,
		s.sizes, s.committedAgain, s.again, s.interrupted, s.straddling, s.empty)
}

// sharedRun is one run.
type sharedRun struct {
	t       *testing.T
	random  chance
	dir     string
	service *leaseService
	sources []sharedSource
	// noClobber means that an existing object is not uploaded again.
	noClobber    bool
	kills, stops int // the remaining ones, which are not planned yet

	slots     [sharedProcesses]*sharedProcess
	pause     [sharedProcesses]time.Time // the next process starts then
	processes []*sharedProcess
	objects   map[string]string // by the ID of the upload
	lags      []span            // in which this process did not run
}

type sharedSource struct {
	path, object string
	content      []byte
}

// sharedProcess is a process of a run.
type sharedProcess struct {
	number int
	child  *child
	log    string // its log file
	began  time.Time
	act    time.Time // when it will be killed or stopped, or continues; zero if that is not planned
	kill   bool
	length time.Duration // of the next stop
	stops  []span
	killed time.Time
	ended  time.Time // when the test noticed the end; zero while it runs

	logged    string // its log file
	exchanges []clientExchange
}

// span is a time in which a process is stopped. to is zero while the process is
// stopped.
type span struct{ from, to time.Time }

func newSharedRun(t *testing.T, seed uint64) *sharedRun {
	random := seeded(t, seed)
	r := &sharedRun{
		t: t, random: random, dir: t.TempDir(), service: newLeaseService(t), objects: map[string]string{},
		noClobber: random.IntN(2) == 0,
		kills:     testsize.Full(4, 2) + random.IntN(3), stops: testsize.Full(4, 2) + random.IntN(3),
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	if err := os.WriteFile(filepath.Join(r.dir, "key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range sharedUploads {
		s := sharedSource{object: fmt.Sprintf("o%02d", i)}
		s.path = filepath.Join(r.dir, s.object)
		size := 2<<20 + random.Int64N(4<<20)
		if random.IntN(testsize.Full(1, 8)) == 0 {
			size = 9<<20 + random.Int64N(3<<20)
		}
		if random.IntN(8) == 0 {
			size += random.Int64N(12 << 20)
		}
		s.content = source(t, s.path, size, random.Uint64())
		r.sources = append(r.sources, s)
	}
	if err := r.service.gcs.AddFaults(r.faults()...); err != nil {
		t.Fatal(err)
	}
	return r
}

// faults returns a plan for both buckets.
func (r *sharedRun) faults() (plan []faults.Fault) {
	add := func(bucket string, ops []faults.Op, most int) {
		do := faults.Action{Effect: faults.EffectLoseReply}
		switch r.random.IntN(6) {
		case 0, 1:
			do = faults.Action{Effect: faults.EffectStatus, Status: 503, Early: r.random.IntN(2) == 0}
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
		plan = append(plan, faults.Fault{Match: faults.Match{Bucket: bucket, Op: ops[r.random.IntN(len(ops))]}, Skip: r.random.IntN(most), Do: do})
	}
	for range 20 {
		add("data", []faults.Op{faults.OpStart, faults.OpPut, faults.OpPut, faults.OpPut, faults.OpQuery, faults.OpFinalize}, 15)
	}
	for range 12 {
		add(stateBucket, []faults.Op{faults.OpInsert, faults.OpInsert, faults.OpGet, faults.OpRead, faults.OpDelete, faults.OpList, faults.OpBucketGet}, 15)
	}
	return plan
}

func (r *sharedRun) run(all *sharedTotals) {
	last := time.Now()
	for deadline := time.Now().Add(2 * time.Minute); !r.done(); time.Sleep(5 * time.Millisecond) {
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
	r.rest()
	r.check(all)
	if r.t.Failed() {
		r.t.Logf("\n%s", r.story())
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

// done reports whether all objects exist.
func (r *sharedRun) done() bool {
	for _, s := range r.sources {
		if _, ok := r.service.gcs.Object("data", s.object); !ok {
			return false
		}
	}
	return true
}

// step takes the actions that are due in a slot.
func (r *sharedRun) step(i int) {
	p, now := r.slots[i], time.Now()
	switch {
	case p == nil:
		if now.After(r.pause[i]) {
			r.slots[i] = r.start()
		}
	case !p.child.Alive():
		p.ended = now
		r.slots[i], r.pause[i] = nil, now.Add(time.Duration(r.random.Int64N(int64(200*time.Millisecond))))
	case !p.act.IsZero() && now.After(p.act):
		r.disturb(p)
	}
}

// start starts a process with some of the uploads.
func (r *sharedRun) start() *sharedProcess {
	args := []string{"resume", "--all"}
	if r.random.IntN(3) > 0 {
		args = []string{"cp", "--chunk-size=1MiB"}
		if r.noClobber {
			args = append(args, "--no-clobber")
		}
		var sources []string
		for _, n := range r.random.Perm(sharedUploads) {
			if _, ok := r.service.gcs.Object("data", r.sources[n].object); len(sources) < 6 && (!ok || r.noClobber) {
				sources = append(sources, r.sources[n].path)
			}
		}
		args = append(append(args, sources...), "gs://data")
	} else {
		args = append(args, "--chunk-size=1MiB")
	}
	p := r.begin(append(args, "--limit-rate=10MiB")...)
	r.plan(p)
	return p
}

// begin starts a process.
func (r *sharedRun) begin(args ...string) *sharedProcess {
	p := &sharedProcess{number: len(r.processes) + 1, began: time.Now()}
	p.log = filepath.Join(r.dir, fmt.Sprintf("log%d", p.number))
	args = append(args, "--json", "--log-file="+p.log, "--max-wait=200ms", "--retry-for=1m")
	p.child = run(r.t, environment(), r.service.shared(p.number, filepath.Join(r.dir, "key"), args)...)
	r.processes = append(r.processes, p)
	return p
}

// plan chooses what happens to a process next.
func (r *sharedRun) plan(p *sharedProcess) {
	p.act = time.Time{}
	if r.random.IntN(4) == 0 {
		return
	}
	left := &r.stops
	if p.kill = r.random.IntN(2) == 0; p.kill {
		left = &r.kills
	}
	if *left == 0 {
		return
	}
	*left--
	p.act = time.Now().Add(time.Duration(r.random.Int64N(int64(2 * time.Second))))
	// Most stops last longer than the lease.
	p.length = sharedLease + time.Duration(r.random.Int64N(int64(sharedLease)))
	if r.random.IntN(4) == 0 {
		p.length = time.Duration(r.random.Int64N(int64(sharedLease)))
	}
}

// disturb kills, stops or continues a process.
func (r *sharedRun) disturb(p *sharedProcess) {
	switch n := len(p.stops); {
	case n > 0 && p.stops[n-1].to.IsZero():
		p.stops[n-1].to = time.Now()
		p.signal(syscall.SIGCONT)
		r.plan(p)
	case p.kill:
		p.killed = time.Now()
		p.child.Kill()
	default:
		p.signal(syscall.SIGSTOP)
		p.stops = append(p.stops, span{from: time.Now()})
		p.act = time.Now().Add(p.length)
	}
}

func (p *sharedProcess) signal(s syscall.Signal) { p.child.Signal(s) }

// rest waits for the processes, and finishes the uploads that killed processes left
// in the store.
func (r *sharedRun) rest() {
	running := slices.DeleteFunc(slices.Clone(r.slots[:]), func(p *sharedProcess) bool { return p == nil })
	for _, p := range running {
		if n := len(p.stops); n > 0 && p.stops[n-1].to.IsZero() {
			p.stops[n-1].to = time.Now()
			p.signal(syscall.SIGCONT)
		}
	}
	for _, p := range running {
		r.wait(p)
	}
	for range 5 {
		p := r.begin("resume", "--all")
		if r.wait(p); p.child.Wait() == 0 {
			break
		}
	}
	if p := r.list(); p.Wait() != 0 || p.Stdout() != "" || !strings.Contains(p.Stderr(), "no saved uploads") {
		r.t.Errorf("uploads are left in the store: %s", p.output())
	}
}

// wait waits for the end of a process.
func (r *sharedRun) wait(p *sharedProcess) {
	select {
	case <-p.child.Done():
		p.ended = time.Now()
	case <-time.After(time.Minute):
		p.signal(syscall.SIGQUIT)
		r.t.Fatalf("process %d does not end\n%s\n%s", p.number, p.child.output(), r.story())
	}
}

// list runs sessions list.
func (r *sharedRun) list() *child {
	c := run(r.t, environment(), r.service.shared(0, filepath.Join(r.dir, "key"), []string{"sessions", "list"})...)
	c.Wait()
	return c
}

// story returns the actions of the processes, for a failed test.
func (r *sharedRun) story() string {
	var b strings.Builder
	start := r.processes[0].began
	for _, p := range r.processes {
		fmt.Fprintf(&b, "%d: %v %q", p.number, p.began.Sub(start).Round(time.Millisecond), p.child.Args()[1:3])
		for _, s := range p.stops {
			fmt.Fprintf(&b, " stopped %v to %v", s.from.Sub(start).Round(time.Millisecond), s.to.Sub(start).Round(time.Millisecond))
		}
		if !p.killed.IsZero() {
			fmt.Fprintf(&b, " killed %v", p.killed.Sub(start).Round(time.Millisecond))
		}
		if !p.child.Alive() {
			fmt.Fprintf(&b, " ended %v with %d", p.ended.Sub(start).Round(time.Millisecond), p.child.Wait())
		}
		b.WriteByte('\n')
	}
	b.WriteString(r.service.story(start))
	return b.String()
}

// check checks everything after the last process.
func (r *sharedRun) check(all *sharedTotals) {
	s := r.service
	all.empty += s.left(r.t)
	r.readLogs()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.log, func(a, b sharedRequest) int { return a.Time.Compare(b.Time) })
	all.runs++
	all.processes += len(r.processes)
	for _, q := range s.log {
		if q.Fault != "" {
			all.fault++
		}
	}
	for _, src := range r.sources {
		got, err := s.gcs.ReadObject("data", src.object)
		all.objects++
		all.sizes += int64(len(src.content))
		if err != nil || !bytes.Equal(got, src.content) {
			all.wrong++
			r.t.Errorf("%s: object has %d bytes (%v), want the %d bytes of the source", src.object, len(got), err, len(src.content))
		}
		r.checkSessions(src, all)
	}
	for _, body := range s.saved {
		if s.hasURI(string(body)) {
			r.t.Error("a session URI was saved in plain text")
		}
	}
	for _, p := range r.processes {
		if !p.killed.IsZero() {
			all.kills++
		}
		all.stops += len(p.stops)
		r.checkEnd(p, all)
		r.checkSecrets(p)
		r.checkWake(p, all)
		r.checkTakeovers(p, all)
	}
	r.checkFence()
}

// checkEnd checks the exit code of a process.
func (r *sharedRun) checkEnd(p *sharedProcess, all *sharedTotals) {
	code, used := p.child.Wait(), 0
	for _, l := range p.child.lines() {
		if l.Type != "result" || l.Status != "failed" {
			continue
		}
		if l.kind() != "in_use" {
			r.t.Errorf("process %d: %s: %+v", p.number, l.Destination, l.Error)
		}
		used++
	}
	all.inUse += used
	want := 0
	if used > 0 {
		want = 75
	}
	if code != want && (code != -1 || p.killed.IsZero()) {
		r.t.Errorf("process %d ended with %d, want %d: %s", p.number, code, want, p.child.output())
	}
}

// checkSecrets checks that no output or file of a process has a session URI.
func (r *sharedRun) checkSecrets(p *sharedProcess) {
	for where, text := range map[string]string{"output": p.child.Stdout(), "errors": p.child.Stderr(), "log": p.logged} {
		if r.service.hasURI(text) {
			r.t.Errorf("process %d: a session URI is in its %s", p.number, where)
		}
	}
}

// process returns a process by its number.
func (r *sharedRun) process(n int) *sharedProcess {
	if n < 1 || n > len(r.processes) {
		return nil
	}
	return r.processes[n-1]
}
