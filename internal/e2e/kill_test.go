//go:build unix

package e2e_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
)

var (
	kills     = flag.Int("kills", testsize.Full(25, 5), "how many processes to kill")
	partKills = flag.Int("part-kills", testsize.Full(12, 4), "how many processes that send parts to kill")
	killSeed  = flag.Uint64("kill-seed", 0, "of the kills; 0 takes that of testsize.Seed")
)

// TestKilled kills the client and the server with SIGKILL, at seeded points, until each object is uploaded.
//
//	go test ./internal/e2e -run Killed -kills 1000 -kill-seed 7 -v
func TestKilled(t *testing.T) {
	t.Parallel()
	k := newKilling(t, *kills, *killSeed)
	var resent []int64 // bytes sent twice by a client whose server was killed
	for k.more() {
		size, flags := 9*mib+k.random.Int64N(16*mib), []string(nil)
		switch k.random.IntN(8) {
		case 0, 1: // small, in small requests, so that there is a session
			size = mib + k.random.Int64N(7*mib)
			flags = []string{"--chunk-size", fmt.Sprint(256 << 10 << k.random.IntN(2))}
		case 2: // small, in one request
			size = k.random.Int64N(8 * mib)
		case 3:
			flags = []string{"--chunk-size=1MiB"}
		}
		before := k.kills[ofServer] + k.early
		o := k.target(size, "--rate", fmt.Sprint(32*mib<<k.random.IntN(2)))
		moments := []moment{byBytes, byBytes, byBytes, byTime, byTime, inSave, inSave, ofServer}
		if last := o.upload(1+k.random.IntN(8), moments, func() []string { return flags }); last != nil && last.result().BytesResent > 0 {
			resent = append(resent, last.result().BytesResent)
		}
		l := o.finish()
		// A process starts another session if it was killed before it saved the session, or if its server
		// was killed before it replied.
		if without := k.kills[ofServer] + k.early - before; l.sessions > 1+without {
			t.Errorf("%d sessions for one object, with %d kills before the state file or of the server", l.sessions, without)
		}
	}
	slices.Sort(resent)
	t.Log(k)
	if len(resent) > 0 {
		t.Logf("bytes that a client handed over twice because its server was killed: median %d, max %d", resent[len(resent)/2], slices.Max(resent))
	}
}

// TestPartsKilled kills clients that send a file in parts, by compose or by multipart.
//
//	go test ./internal/e2e -run PartsKilled -part-kills 300 -kill-seed 7 -v
func TestPartsKilled(t *testing.T) {
	t.Parallel()
	k := newKilling(t, *partKills, *killSeed)
	for k.more() {
		way, rate := "compose", 16*mib
		if k.random.oneIn(2) {
			way, rate = "multipart", 48*mib // at a lower rate, processes are killed before a part is finished
		}
		o := k.target(18*mib+k.random.Int64N(24*mib), "--rate", fmt.Sprint(rate))
		o.upload(1+k.random.IntN(6), []moment{byTime, byTime, byBytes, inSave}, func() []string {
			return []string{"--parallel", fmt.Sprint(2 + k.random.IntN(3)), "--parallel-by", way}
		})
		o.finish()
	}
	t.Log(k)
}

// moment is when a process is killed.
type moment int

const (
	byBytes  moment = iota // when the server has received a number of bytes
	byTime                 // after a random time of a few milliseconds or more
	inSave                 // while the state file is being written
	ofServer               // the emulator is killed and restarted, and the process continues
	moments
)

// killing is a test that kills processes, each of which uploads a file, and collects the results.
type killing struct {
	t      *testing.T
	random chance
	most   int // kills

	kills                               [moments]int
	early, torn                         int // kills before there was a state file, and kills that left an incomplete one
	files, sessions, maxSessions, empty int
	bytes, again, discarded, twice      int64
}

func newKilling(t *testing.T, most int, seed uint64) *killing {
	return &killing{t: t, random: seeded(t, seed), most: most}
}

func (k *killing) total() (n int) {
	for _, kills := range k.kills {
		n += kills
	}
	return n
}

// more reports whether the test must kill more processes.
func (k *killing) more() bool { return k.total() < k.most && !k.t.Failed() }

func (k *killing) String() string {
	return fmt.Sprintf(`%d kills (%d by bytes, %d by time, %d in a save, %d of the emulator); %d before there was a state file, %d left a torn one
%d objects, %d bytes in them; %d sessions, at most %d for one object; committed bytes sent again: %d; of a request that was cut off, the server received at most %d bytes twice
most bytes of a session discarded to divide a file: %d; multipart uploads without a part left: %d`,
		k.total(), k.kills[byBytes], k.kills[byTime], k.kills[inSave], k.kills[ofServer], k.early, k.torn,
		k.files, k.bytes, k.sessions, k.maxSessions, k.again, k.twice, k.discarded, k.empty)
}

// target is a file that becomes the object x, and everything that is needed for that.
type target struct {
	*killing
	*emulator
	root     string // the directory of the test
	state    string
	path     string
	want     object
	clients  []*child
	requests []fakegcs.Request // after finish
	span     time.Duration     // a kill by time is in this time after the start; 0 is half a second
}

// target makes a file, and starts an emulator with these flags.
func (k *killing) target(size int64, flags ...string) *target {
	k.t.Helper()
	root, err := os.MkdirTemp(k.t.TempDir(), "")
	require.NoError(k.t, err)
	o := &target{killing: k, emulator: startEmulator(k.t, flags...), root: root, state: filepath.Join(root, "state"), path: filepath.Join(root, "source")}
	o.want = object{Size: size, CRC32C: sum(source(k.t, o.path, size, k.random.Uint64()))}
	k.files++
	k.bytes += size
	return o
}

// begin starts a process that uploads the file.
func (o *target) begin(flags ...string) *child {
	o.t.Helper()
	args := []string{"cp", "--json", "--state-dir", o.state, "--endpoint", o.url, "--max-wait", "200ms", "--retry-for", "1m"}
	c := run(o.t, environment(), slices.Concat(args, flags, []string{o.path, "gs://demo/x"})...)
	o.clients = append(o.clients, c)
	return c
}

// upload runs processes until the object is made. The first ones are killed, or their server is. It
// returns the process that finished the upload, or nil if that was a process that was killed.
func (o *target) upload(kills int, at []moment, flags func() []string) *child {
	o.t.Helper()
	for ; ; kills-- {
		c := o.begin(flags()...)
		killed := kills > 0 && o.more() && o.disturb(c, pick(o.random, at...))
		if !killed && c.Wait() != 0 {
			o.t.Fatal(c.output())
		}
		for _, l := range c.lines() {
			if l.Type == "discarded" {
				o.t.Errorf("a kill damaged the state file: %s", c.output())
			}
		}
		got, made := o.objects("demo")["x"]
		if made && !got.same(o.want) || !made && !killed {
			o.t.Errorf("the object (exists: %v) is %+v, want %+v", made, got, o.want)
		}
		if !killed {
			return c
		}
		if o.hasState(".tmp") {
			o.torn++
		}
		if !o.hasState(".json") {
			if made {
				return nil // another process would upload the object again
			}
			o.early++
		}
	}
}

// disturb kills a process, or its server. It returns false if the process ends by itself.
func (o *target) disturb(c *child, m moment) bool {
	if m != ofServer {
		if !o.wait(c, m) || !c.kill() {
			return false
		}
		o.kills[m]++
		return true
	}
	for range 1 + o.random.IntN(3) {
		if !o.wait(c, pick(o.random, byBytes, byTime)) {
			break
		}
		o.emulator.kill()
		o.random.pause(300 * time.Millisecond)
		o.start()
		o.kills[m]++
	}
	return false
}

// wait waits for the moment of a kill. It returns false if the process ended before.
func (o *target) wait(c *child, m moment) bool {
	pause := func(d time.Duration) bool {
		select {
		case <-c.Done():
			return false
		case <-time.After(d):
			return true
		}
	}
	switch m {
	case byTime:
		if o.random.oneIn(4) { // The process is still parsing its flags, or saves for the first time.
			return pause(o.random.below(80 * time.Millisecond))
		}
		return pause(o.random.below(cmp.Or(o.span, 500*time.Millisecond)))
	case inSave:
		// A save takes a third of a millisecond, so that the loop polls without a pause.
		var temp string
		if !until(c.Done(), time.Millisecond/2, func() bool {
			for _, name := range o.stateFiles() {
				if id, ok := strings.CutSuffix(name, ".lock"); ok {
					temp = filepath.Join(o.state, "uploads", id+".tmp")
				}
			}
			return temp != ""
		}) {
			return false
		}
		var st syscall.Stat_t
		is := func(there bool) bool {
			return until(c.Done(), 0, func() bool { return (syscall.Lstat(temp, &st) == nil) == there })
		}
		for range o.random.IntN(2) * o.random.IntN(4) { // half of the kills are in the first save
			if !is(true) || !is(false) {
				return false
			}
		}
		return is(true)
	default:
		aim := o.held()
		aim += o.random.Int64N(max(o.want.Size-aim, 1))
		// The server stores multiples of 256 KiB at once. The rest may not be stored yet.
		return until(c.Done(), 100*time.Microsecond, func() bool { return o.held() >= aim }) && pause(o.random.below(4*time.Millisecond))
	}
}

func (o *target) stateFiles() []string {
	f, err := os.Open(filepath.Join(o.state, "uploads"))
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	return names
}

// hasState reports whether a state file has the suffix. That of a saved upload is .json.
func (o *target) hasState(suffix string) bool {
	return slices.ContainsFunc(o.stateFiles(), func(name string) bool { return strings.HasSuffix(name, suffix) })
}

// story lists the requests, and between them what the processes printed.
func (o *target) story() string {
	var text strings.Builder
	clients := o.clients
	for _, r := range o.requests {
		for len(clients) > 0 && clients[0].began.Before(r.Time) {
			fmt.Fprintf(&text, "process %d, killed %v: %s\n", len(o.clients)-len(clients)+1, clients[0].killed.Format("05.000"), clients[0].output())
			clients = clients[1:]
		}
		fmt.Fprintf(&text, "%s to %s: %s %s %s %s: %d %s, %d bytes received\n", r.Time.Format("05.000"), r.Time.Add(r.Elapsed).Format("05.000"), r.Op, r.Object, r.ContentRange, r.Path, r.Status, r.Range, r.Received)
	}
	return text.String()
}

// finish checks the object, the requests, and that nothing else is left.
func (o *target) finish() *ledger {
	o.t.Helper()
	o.stop()
	o.flags = nil // an object is read fast
	o.start()
	o.empty += o.complete(map[string]string{"x": o.path})
	o.requests = o.emulator.requests()
	if o.hasState(".json") || o.hasState(".tmp") {
		o.t.Errorf("state files are left: %q", o.stateFiles())
	}
	l := account(o.t, o.requests, o.clients)
	o.sessions += l.sessions
	o.maxSessions = max(o.maxSessions, l.sessions)
	o.again += l.again
	o.twice = max(o.twice, l.twice)
	o.discarded = max(o.discarded, l.discarded)
	if l.again > 0 {
		o.t.Errorf("%d committed bytes were sent again:\n%s", l.again, o.story())
	}
	// The server keeps the multiples of 256 KiB of a request that is cut off, except one that it receives when it is killed.
	if l.twice > 256<<10 {
		o.t.Errorf("%d bytes of a request were received twice, want at most 256 KiB", l.twice)
	}
	for _, dir := range []string{o.root, o.dir} {
		if err := os.RemoveAll(dir); err != nil {
			o.t.Error(err)
		}
	}
	return l
}
