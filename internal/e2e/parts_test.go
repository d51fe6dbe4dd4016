//go:build unix

package e2e_test

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
)

var partKills = flag.Int("part-kills", testsize.Full(12, 3), "how many processes that send parts to kill")

// TestPartsKilled sends SIGKILL at seeded points to clients that send a file in
// parts, by compose or by multipart, until each object is uploaded. It checks the
// objects, that no committed byte was sent again, and that neither a temporary object
// nor a part of a multipart upload is left.
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
	t.Logf("%d kills, %d objects (%d by multipart), %d bytes in them; %d sessions; committed bytes sent again: %d; multipart uploads without a part left: %d",
		total.kills, total.objects, total.multipart, total.bytes, total.sessions, total.again, total.empty)
	if total.again > 0 {
		t.Error("committed bytes were sent again")
	}
}

// partsKilling collects the results.
type partsKilling struct {
	kills, objects, multipart, sessions int
	empty                               int // multipart uploads without a saved ID, because the process was killed
	bytes, again                        int64
}

// object uploads one object, with as many processes as necessary.
func (k *partsKilling) object(t *testing.T, random *rand.Rand) {
	size, way, rate := 18<<20+random.Int64N(24<<20), "compose", 16<<20
	if random.IntN(2) == 0 {
		way, rate = "multipart", 48<<20 // at a lower rate, processes are killed before a part is finished
		k.multipart++
	}
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	e := startEmulator(t, "--rate", fmt.Sprint(rate))
	defer func() {
		e.child.Kill()
		_ = os.RemoveAll(dir)
		_ = os.RemoveAll(e.dir)
	}()
	o := &target{t: t, e: e, random: random, size: size, state: filepath.Join(dir, "state"), path: filepath.Join(dir, "source")}
	o.content = source(t, o.path, size, random.Uint64())
	for left := 1 + random.IntN(6); ; left-- {
		o.args = []string{"cp", "--json", "--parallel", fmt.Sprint(2 + random.IntN(3)), "--parallel-by", way, "--state-dir", o.state, "--endpoint", e.url(), "--max-wait", "200ms", "--retry-for", "1m", o.path, "gs://demo/x"}
		if left <= 0 {
			c := run(t, environment(), o.args...)
			if c.Wait() != 0 {
				t.Fatal(c.output())
			}
			break
		}
		n, done := o.once([]manner{byTime, byTime, byBytes, bySave}[random.IntN(4)])
		k.kills += n
		if done != nil {
			if done.Wait() != 0 {
				t.Fatal(done.output())
			}
			break
		}
	}
	k.objects++
	k.bytes += size
	if got, ok := e.object("x"); !ok || !bytes.Equal(got, o.content) {
		t.Errorf("the object has %d bytes (exists: %v), want the %d bytes of the source", len(got), ok, size)
	}
	k.empty += o.e.emptyUploads()
	k.account(o)
}

// emptyUploads returns the number of multipart uploads. None may have a part.
func (e *emulator) emptyUploads() int {
	e.t.Helper()
	read := func(path string, v any) {
		resp, err := http.Get(e.url() + path)
		if err != nil {
			e.t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := xml.NewDecoder(resp.Body).Decode(v); err != nil {
			e.t.Fatal(err)
		}
	}
	var uploads struct {
		XMLName xml.Name `xml:"ListMultipartUploadsResult"`
		Upload  []struct {
			Key string
			ID  string `xml:"UploadId"`
		}
	}
	read("/demo?uploads", &uploads)
	for _, u := range uploads.Upload {
		var list struct {
			XMLName xml.Name `xml:"ListPartsResult"`
			Part    []struct{ PartNumber int }
		}
		read("/demo/"+u.Key+"?uploadId="+u.ID, &list)
		if len(list.Part) > 0 {
			e.t.Errorf("a multipart upload with %d parts is left", len(list.Part))
		}
	}
	return len(uploads.Upload)
}

// account checks the requests of an object: no committed byte was sent again, and every
// temporary object was deleted.
func (k *partsKilling) account(o *target) {
	acknowledged := map[string]int64{} // the committed offset in the last reply, by object
	there := map[string]bool{}         // temporary objects
	parts := map[string]time.Time{}    // when the service had a part of the multipart upload, by its number
	var listed time.Time               // the last request that a client listed the parts with
	for _, r := range o.e.requests() {
		temporary := strings.HasPrefix(r.Object, "gcsup-parts/")
		switch r.Op {
		case faults.OpStart:
			k.sessions++
			acknowledged[r.Object] = 0
		case faults.OpPut, faults.OpFinalize:
			var from int64
			if _, err := fmt.Sscanf(r.ContentRange, "bytes %d-", &from); err != nil {
				o.t.Fatalf("Content-Range %q: %v", r.ContentRange, err)
			}
			k.again += max(acknowledged[r.Object]-from, 0)
			if r.Op == faults.OpFinalize && temporary {
				there[r.Object] = true
			}
		case faults.OpPartsStart:
			k.sessions++
			clear(parts)
		case faults.OpPartsList:
			listed = r.Time
		case faults.OpPartsPut:
			_, number, _ := strings.Cut(r.Path, "partNumber=")
			if had, ok := parts[number]; ok && had.Before(listed) {
				k.again += r.Received
			}
			if r.Status == 200 {
				parts[number] = r.Time.Add(r.Elapsed)
			}
		case faults.OpDelete:
			if r.Status == 204 || r.Status == 404 {
				delete(there, r.Object)
			}
		}
		var last int64
		if _, err := fmt.Sscanf(r.Range, "bytes=0-%d", &last); err == nil {
			acknowledged[r.Object] = last + 1
		}
	}
	for name := range there {
		o.t.Errorf("%s is left", name)
	}
}
