//go:build unix

package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"flag"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
)

var autoKills = flag.Int("auto-kills", testsize.Full(6, 2), "how many processes that send a large file by default flags to kill")

const (
	mib = int64(1) << 20

	// discardMost is the most that --parallel=auto discards of a session that shows a slow connection.
	discardMost = 16 * mib

	// certainTime is how long a client sends before it must have committed something.
	certainTime = 5 * time.Second
)

// TestAutoPartsKilled sends SIGKILL at seeded points to clients that send a file of about 200 MiB with
// the default of --parallel, and to the emulator, until each object is uploaded. The links limit each
// connection, all together, or nothing. Some of the next clients, and each fourth first one, have another
// --parallel. It checks the objects, that no committed byte was sent again, and that each client that sent
// for some seconds committed something.
//
//	go test ./internal/e2e -run AutoPartsKilled -auto-kills 100 -kill-seed 7 -v
func TestAutoPartsKilled(t *testing.T) {
	t.Parallel()
	random := seeded(t, *killSeed)
	var total partsKilling
	var decided decisions
	for total.kills < *autoKills && !t.Failed() {
		total.autoObject(t, random, &decided)
	}
	t.Logf("%d kills (%d of the emulator), %d objects, %d MiB in them; %d sessions; committed bytes sent again: %d; most bytes discarded to divide a file: %d; most bytes received of a killed client and not committed: %d; clients killed before a byte was committed: %d, after at most %v; multipart uploads without a part left: %d",
		total.kills, decided.servers, total.objects, total.bytes/mib, total.sessions, total.again, total.discarded, total.risked, total.useless, total.longest.Round(time.Millisecond), total.empty)
	t.Logf("of the finished uploads, %d in parts and %d over one connection", decided.divided, decided.undivided)
	if total.again > 0 {
		t.Error("committed bytes were sent again")
	}
	if total.discarded > discardMost {
		t.Errorf("%d bytes of a session were discarded to divide a file, want at most %d", total.discarded, discardMost)
	}
}

// decisions counts how the objects were made.
type decisions struct{ divided, undivided, servers int }

// partsRun is a process.
type partsRun struct {
	began, ended time.Time
	killed       bool
	first        time.Time // when its first object data arrived; zero if there was none
	arrived      int64     // bytes of object data that the service received
	kept         int64     // of these, those that it keeps
}

// received counts a request of one of the runs.
func (k *partsKilling) received(r fakegcs.Request) {
	if r.Op != faults.OpPut && r.Op != faults.OpFinalize && r.Op != faults.OpPartsPut || r.Received == 0 {
		return
	}
	for i := len(k.runs) - 1; i >= 0; i-- {
		run := &k.runs[i]
		if r.Time.Before(run.began) {
			continue
		}
		if run.first.IsZero() || r.Time.Before(run.first) {
			run.first = r.Time
		}
		run.arrived += r.Received
		switch {
		case r.Op != faults.OpPartsPut:
			run.kept += r.Received - r.Received%(256<<10)
		case r.Status == 200:
			run.kept += r.Received
		}
		return
	}
}

// autoLink is a link to the emulator.
type autoLink struct {
	flags []string      // of the emulator
	span  time.Duration // see target
	most  int64         // bytes that a killed client may have sent in vain; 0 is no limit
}

// autoLinks are the links. A fast one may have more bytes under way. Over the one without flags, a
// single connection is fast enough. Over the last ones, a file takes up to a minute: they are for many kills.
var autoLinks = []autoLink{
	{flags: []string{"--rate", "32MiB", "--latency", "20ms"}, span: 3 * time.Second},
	{flags: []string{"--total-rate", "40MiB", "--latency", "20ms"}, span: 4 * time.Second},
	{},
	{flags: []string{"--rate", "4MiB"}, span: 6 * time.Second},
	{flags: []string{"--total-rate", "10MiB"}, span: 12 * time.Second, most: 128 * mib},
}

const slowLinks = 2 // at the end of autoLinks

// autoObject uploads one object, with as many processes as necessary.
func (k *partsKilling) autoObject(t *testing.T, random *rand.Rand, decided *decisions) {
	links := autoLinks
	if *autoKills < 20 {
		links = links[:len(links)-slowLinks]
	}
	size, link, compose := 152*mib+random.Int64N(56*mib), links[random.IntN(len(links))], random.IntN(3) == 0
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	e := startEmulator(t, link.flags...)
	defer func() {
		e.child.Kill()
		_ = os.RemoveAll(dir)
		_ = os.RemoveAll(e.dir)
	}()
	o := &target{t: t, e: e, random: random, size: size, state: filepath.Join(dir, "state"), path: filepath.Join(dir, "source"), span: link.span}
	want := encoded(crc32.Checksum(source(t, o.path, size, random.Uint64()), castagnoli))
	k.runs = nil
	for left := 2 + random.IntN(6); ; left-- {
		o.args = []string{"cp", "--json", "--state-dir", o.state, "--endpoint", e.url(), "--max-wait", "200ms", "--retry-for", "1m"}
		if compose {
			o.args = append(o.args, "--parallel-by", "compose")
		}
		switch n, first := random.IntN(6), len(o.clients) == 0; {
		case first && k.objects%4 == 3, !first && n < 2:
			o.args = append(o.args, "--parallel", "off")
		case !first && n == 2:
			o.args = append(o.args, "--parallel", "3")
		}
		o.args = append(o.args, o.path, "gs://demo/x")
		began, n, done := time.Now(), 0, (*child)(nil)
		if left > 0 {
			m := []manner{byTime, byTime, byTime, byBytes, byBytes, bySave, byServer}[random.IntN(7)]
			n, done = o.once(m)
			if m == byServer {
				decided.servers += n
			}
		} else {
			done = o.run()
		}
		k.kills += n
		k.runs = append(k.runs, partsRun{began: began, ended: time.Now(), killed: done == nil})
		if got, ok := e.declared("x"); ok && got != want {
			t.Errorf("the object has the CRC32C %s, want %s", got, want)
		}
		if done == nil {
			if o.finished() {
				break
			}
			continue
		}
		if done.Wait() != 0 {
			t.Fatal(done.output())
		}
		if done.result().Parallel != nil {
			decided.divided++
		} else {
			decided.undivided++
		}
		break
	}
	e.unlimited()
	if got, ok := e.checksum("x"); !ok || got != want {
		t.Errorf("the object (exists: %v) has the CRC32C %s, want %s", ok, got, want)
	}
	k.objects++
	k.bytes += size
	k.empty += o.e.emptyUploads()
	k.account(o)
	for _, run := range k.runs {
		if !run.killed || run.arrived == 0 {
			continue
		}
		sent := run.ended.Sub(run.first)
		k.risked = max(k.risked, run.arrived-run.kept)
		if run.kept == 0 {
			k.useless++
			k.longest = max(k.longest, sent)
		}
		if run.kept == 0 && sent > certainTime {
			t.Errorf("a client sent %d bytes in %v over %q, and committed none", run.arrived, sent, link.flags)
		}
		if lost := run.arrived - run.kept; link.most > 0 && lost > link.most {
			t.Errorf("a killed client over %q had sent %d bytes that were not committed, want at most %d", link.flags, lost, link.most)
		}
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encoded returns a CRC32C as the service writes it.
func encoded(crc32c uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc32c))
}

// unlimited restarts the emulator without its flags, so that an object is read fast.
func (e *emulator) unlimited() {
	e.t.Helper()
	e.stop()
	e.flags = nil
	e.start()
}

// checksum returns the CRC32C of the bytes of an object of the bucket demo. It returns false if there
// is none.
func (e *emulator) checksum(name string) (crc32c string, ok bool) {
	e.t.Helper()
	sum := crc32.New(castagnoli)
	ok = e.read(name+"?alt=media", sum)
	return encoded(sum.Sum32()), ok
}

// declared is checksum, but trusts the metadata of the object.
func (e *emulator) declared(name string) (crc32c string, ok bool) {
	e.t.Helper()
	var body bytes.Buffer
	var object struct {
		CRC32C string `json:"crc32c"`
	}
	if ok = e.read(name, &body); ok {
		if err := json.Unmarshal(body.Bytes(), &object); err != nil {
			e.t.Fatal(err)
		}
	}
	return object.CRC32C, ok
}
