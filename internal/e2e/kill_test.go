//go:build unix

package e2e_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
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
	kills    = flag.Int("kills", testsize.Full(25, 5), "how many processes to kill")
	killSeed = flag.Uint64("kill-seed", 0, "of the kills; 0 takes that of testsize.Seed")
)

// manner is the way in which the moment of a kill is chosen.
type manner int

const (
	byBytes  manner = iota // when the server has received a number of bytes
	byTime                 // after a random time of a few milliseconds or more
	bySave                 // while the state file is being written
	byServer               // the emulator is killed and restarted
	manners
)

func (m manner) String() string {
	return [...]string{"by bytes", "by time", "in a save", "of the emulator"}[m]
}

// killing collects the results.
type killing struct {
	kills                [manners]int
	early                int // kills before the state file was written
	torn                 int // kills that left an incomplete state file
	objects, wrong       int
	sessions, most       int
	again                []int64 // bytes that the server received twice, for each kill of a client
	resent               []int64 // bytes sent twice by a client whose server was killed
	committedAgain, sent int64
}

// TestKilled kills the client and the server with SIGKILL, at seeded points,
// until each object is uploaded, and checks the objects.
//
//	go test ./internal/e2e -run Killed -kills 1000 -kill-seed 7 -v
func TestKilled(t *testing.T) {
	t.Parallel()
	random := seeded(t, *killSeed)
	var k killing
	if testing.Short() {
		*kills = min(*kills, 4)
	}
	for k.total() < *kills && !t.Failed() {
		k.object(t, random)
	}
	slices.Sort(k.again)
	slices.Sort(k.resent)
	t.Logf("%d kills (%d by bytes, %d by time, %d in a save, %d of the emulator); %d before there was a state file, %d left a torn one",
		k.total(), k.kills[byBytes], k.kills[byTime], k.kills[bySave], k.kills[byServer], k.early, k.torn)
	t.Logf("%d objects, %d bytes in them: %d wrong; %d sessions, at most %d for one object", k.objects, k.sent, k.wrong, k.sessions, k.most)
	t.Logf("committed bytes sent again: %d; bytes that the server took in twice, for each killed client: median %d, max %d; bytes that a client handed over twice because its server was killed: median %d, max %d",
		k.committedAgain, middle(k.again), greatest(k.again), middle(k.resent), greatest(k.resent))
	if k.wrong > 0 || k.committedAgain > 0 {
		t.Error("an object is wrong, or committed bytes were sent again")
	}
	// The server keeps the multiples of 256 KiB of a request that is cut off.
	if greatest(k.again) >= 256<<10 {
		t.Errorf("after a kill %d bytes were received twice, want less than 256 KiB", greatest(k.again))
	}
}

func (k *killing) total() (n int) {
	for _, m := range k.kills {
		n += m
	}
	return n
}

func middle(sorted []int64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

func greatest(sorted []int64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return slices.Max(sorted)
}

// object uploads one object, with as many processes as necessary.
func (k *killing) object(t *testing.T, random *rand.Rand) {
	size, chunk := 9<<20+random.Int64N(16<<20), int64(0)
	switch random.IntN(8) {
	case 0, 1: // small, in small requests, so that there is a session
		size = 1<<20 + random.Int64N(7<<20)
		chunk = 256 << 10 << random.IntN(2)
	case 2: // small, in one request
		size = random.Int64N(8 << 20)
	case 3:
		chunk = 1 << 20
	}
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	e := startEmulator(t, "--rate", fmt.Sprint(32<<20<<random.IntN(2)))
	defer func() {
		e.child.Kill()
		_ = os.RemoveAll(dir)
		_ = os.RemoveAll(e.dir)
	}()
	o := &target{t: t, e: e, random: random, size: size, state: filepath.Join(dir, "state"), path: filepath.Join(dir, "source")}
	o.content = source(t, o.path, size, random.Uint64())
	o.args = []string{"cp", "--json", "--state-dir", o.state, "--endpoint", e.url(), "--max-wait", "200ms", "--retry-for", "1m"}
	if chunk > 0 {
		o.args = append(o.args, "--chunk-size", fmt.Sprint(chunk))
	}
	o.args = append(o.args, o.path, "gs://demo/x")

	resumable := size > 8<<20 || chunk > 0
	before := k.kills[byServer]
	left, early := 1+random.IntN(8), 0
	for ; left > 0 && k.total() < *kills; left-- {
		m := []manner{byBytes, byBytes, byBytes, byTime, byTime, bySave, bySave, byServer}[random.IntN(8)]
		n, done := o.once(m)
		killed := n > 0
		k.kills[m] += n
		if done != nil {
			k.finished(o, done)
			break
		}
		if killed {
			if resumable && !o.hasState(".json") {
				early++
			}
			if o.hasState(".tmp") {
				k.torn++
			}
		}
		k.look(o, false)
	}
	if left == 0 || k.total() >= *kills {
		c := o.run()
		c.Wait()
		k.finished(o, c)
	}
	k.early += early
	k.look(o, true)
	k.objects++
	k.sent += size
	k.account(o, early, k.kills[byServer]-before)
}

// target is an object and everything that is needed to upload it.
type target struct {
	t       *testing.T
	e       *emulator
	random  *rand.Rand
	size    int64
	content []byte
	state   string
	path    string
	args    []string
	clients []targetClient
	span    time.Duration // a kill by time is in this time after the start; 0 is half a second
}

// targetClient is a process that uploads a target.
type targetClient struct {
	*child
	began time.Time
}

// run starts a process.
func (o *target) run() *child {
	o.t.Helper()
	began := time.Now()
	c := run(o.t, environment(), o.args...)
	o.clients = append(o.clients, targetClient{c, began})
	return c
}

// once runs a process, and kills it or its server. If the process ended by
// itself, the object is uploaded, and once returns the process as done.
func (o *target) once(m manner) (kills int, done *child) {
	o.t.Helper()
	began := o.e.held()
	c := o.run()
	victims := 1
	if m == byServer {
		victims += o.random.IntN(3)
	}
	for range victims {
		if !o.wait(c, m, began) {
			break
		}
		if m != byServer {
			c.Kill()
			if c.Wait() != -1 {
				break // the process ended before the kill
			}
			return 1, nil
		}
		o.e.kill()
		time.Sleep(time.Duration(o.random.Int64N(int64(300 * time.Millisecond))))
		o.e.start()
		kills++
		began = o.e.held()
	}
	c.Wait()
	return kills, c
}

// wait waits for the moment of the kill. It returns false if the process ended
// before.
func (o *target) wait(c *child, m manner, began int64) bool {
	pause := func(d time.Duration) bool {
		select {
		case <-c.Done():
			return false
		case <-time.After(d):
			return true
		}
	}
	if m == byServer && o.random.IntN(2) == 0 {
		m = byTime
	}
	switch m {
	case byTime:
		// The process is still parsing its flags. The first save follows within tens of
		// milliseconds, and the object takes some hundred milliseconds.
		d := time.Duration(o.random.Int64N(int64(80 * time.Millisecond)))
		if o.random.IntN(4) > 0 {
			d = time.Duration(o.random.Int64N(int64(cmp.Or(o.span, 500*time.Millisecond))))
		}
		return pause(d)
	case bySave:
		// A save takes a third of a millisecond, so that the loop polls without
		// a pause.
		var temp string
		if !until(c.Done(), time.Millisecond/2, func() bool {
			for _, name := range o.stateFiles() {
				if id, ok := strings.CutSuffix(name, ".lock"); ok {
					temp = filepath.Join(o.state, "sessions", id+".tmp")
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
		left := max(o.size-began, 1)
		aim := began + o.random.Int64N(left)
		// The server stores multiples of 256 KiB at once. The rest may not be stored
		// yet.
		return until(c.Done(), 100*time.Microsecond, func() bool { return o.e.held() >= aim }) && pause(time.Duration(o.random.Int64N(int64(4*time.Millisecond))))
	}
}

func (o *target) stateFiles() []string {
	f, err := os.Open(filepath.Join(o.state, "sessions"))
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

// finished reports whether a process that was killed had finished the upload, so that another process would upload
// the object again.
func (o *target) finished() bool {
	if o.hasState(".json") {
		return false
	}
	_, ok := o.e.declared("x")
	return ok
}

// look compares the object, if it exists, with the source.
func (k *killing) look(o *target, must bool) {
	got, ok := o.e.object("x")
	if ok && !bytes.Equal(got, o.content) || !ok && must {
		k.wrong++
		o.t.Errorf("object has %d bytes (exists: %v), want the %d bytes of the source", len(got), ok, o.size)
	}
}

// finished checks the output of the last process.
func (k *killing) finished(o *target, c *child) {
	if c.Wait() != 0 {
		o.t.Fatal(c.output())
	}
	for _, l := range c.lines() {
		if l.Type == "discarded" {
			o.t.Errorf("a kill damaged the state file: %s", c.output())
		}
	}
	if r := c.result().BytesResent; r > 0 {
		k.resent = append(k.resent, r)
	}
}

// account checks the requests of an object, except those that were under way
// when the server was killed.
func (k *killing) account(o *target, early, servers int) {
	t := o.t
	sessions := 0
	var acknowledged, taken int64 // committed offset in the replies; end of the received bytes
	for _, r := range o.e.requests() {
		switch r.Op {
		case faults.OpStart:
			sessions++
			acknowledged, taken = 0, 0
		case faults.OpPut, faults.OpFinalize:
			if strings.HasPrefix(r.ContentRange, "bytes */") {
				break // the service has all bytes, but was killed before it made the object
			}
			var from int64
			if _, err := fmt.Sscanf(r.ContentRange, "bytes %d-", &from); err != nil {
				t.Fatalf("Content-Range %q: %v", r.ContentRange, err)
			}
			if from < acknowledged {
				k.committedAgain += acknowledged - from
			}
			if taken > from {
				k.again = append(k.again, taken-from)
			} else if taken > 0 && from > 0 {
				k.again = append(k.again, 0)
			}
			taken = from + r.Received
		}
		var last int64
		if _, err := fmt.Sscanf(r.Range, "bytes=0-%d", &last); err == nil {
			acknowledged = last + 1
		}
	}
	k.sessions += sessions
	k.most = max(k.most, sessions)
	// A process starts another session if it was killed before it saved the
	// session, or if its server was killed before it replied.
	if sessions > 1+early+servers {
		t.Errorf("%d sessions for one object, with %d kills before the state file and %d of the server", sessions, early, servers)
	}
}
