//go:build unix

package e2e_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/internal/testsize"
)

var partKills = flag.Int("part-kills", testsize.Full(12, 4), "how many processes that send parts to kill")

// TestPartsKilled kills clients that send a file in parts with SIGKILL, at seeded points,
// until each object is uploaded. It checks the objects, that no committed byte was sent
// again, and that no temporary object is left.
//
//	go test ./internal/e2e -run PartsKilled -part-kills 300 -kill-seed 7 -v
func TestPartsKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		*partKills = min(*partKills, 2)
	}
	random := seeded(t, *killSeed)
	var total partsKilling
	for total.kills < *partKills && !t.Failed() {
		total.object(t, random)
	}
	t.Logf("%d kills, %d objects, %d bytes in them; %d sessions; committed bytes sent again: %d", total.kills, total.objects, total.bytes, total.sessions, total.again)
	if total.again > 0 {
		t.Error("committed bytes were sent again")
	}
}

// partsKilling collects the results.
type partsKilling struct {
	kills, objects, sessions int
	bytes, again             int64
}

// object uploads one object, with as many processes as necessary.
func (k *partsKilling) object(t *testing.T, random *rand.Rand) {
	size := 18<<20 + random.Int64N(24<<20)
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	e := startEmulator(t, "--rate", fmt.Sprint(16<<20))
	defer func() {
		e.child.kill()
		_ = os.RemoveAll(dir)
		_ = os.RemoveAll(e.dir)
	}()
	o := &target{t: t, e: e, random: random, size: size, state: filepath.Join(dir, "state"), path: filepath.Join(dir, "source")}
	o.content = source(t, o.path, size, random.Uint64())
	for left := 1 + random.IntN(6); ; left-- {
		o.args = []string{"cp", "--json", "--parallel", fmt.Sprint(2 + random.IntN(3)), "--state-dir", o.state, "--endpoint", e.url(), "--max-wait", "200ms", "--retry-for", "1m", o.path, "gs://demo/x"}
		if left <= 0 {
			c := run(t, environment(), o.args...)
			if c.code() != 0 {
				t.Fatal(c.said())
			}
			break
		}
		n, done := o.once([]manner{byTime, byTime, byBytes, bySave}[random.IntN(4)])
		k.kills += n
		if done != nil {
			if done.code() != 0 {
				t.Fatal(done.said())
			}
			break
		}
	}
	k.objects++
	k.bytes += size
	if got, ok := e.object("x"); !ok || !bytes.Equal(got, o.content) {
		t.Errorf("the object has %d bytes (exists: %v), want the %d bytes of the source", len(got), ok, size)
	}
	k.account(o)
}

// account checks the requests of an object: no committed byte was sent again, and every
// temporary object was deleted.
func (k *partsKilling) account(o *target) {
	told := map[string]int64{} // the committed offset in the last reply, by object
	there := map[string]bool{} // temporary objects
	for _, r := range o.e.requests() {
		temporary := strings.HasPrefix(r.Object, "gcsup-parts/")
		switch r.Op {
		case fakegcs.OpStart:
			k.sessions++
			told[r.Object] = 0
		case fakegcs.OpPut, fakegcs.OpFinalize:
			var from int64
			if _, err := fmt.Sscanf(r.ContentRange, "bytes %d-", &from); err != nil {
				o.t.Fatalf("Content-Range %q: %v", r.ContentRange, err)
			}
			k.again += max(told[r.Object]-from, 0)
			if r.Op == fakegcs.OpFinalize && temporary {
				there[r.Object] = true
			}
		case fakegcs.OpDelete:
			if r.Status == 204 || r.Status == 404 {
				delete(there, r.Object)
			}
		}
		var last int64
		if _, err := fmt.Sscanf(r.Range, "bytes=0-%d", &last); err == nil {
			told[r.Object] = last + 1
		}
	}
	for name := range there {
		o.t.Errorf("%s is left", name)
	}
}
