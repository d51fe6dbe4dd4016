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
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
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
	discarded                           int64         // the most bytes of a session that was left for parts
	risked                              int64         // the most bytes of a killed client that the service received and did not keep
	useless                             int           // clients that were killed before a byte was committed
	longest                             time.Duration // for which one of these sent
	runs                                []partsRun    // of the last object
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
			c := o.run()
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
		if o.finished() {
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
	a := accounting{acknowledged: map[string]int64{}, held: map[string]int64{}, there: map[string]bool{}, parts: map[string]partAt{}}
	clients := o.clients
	for _, r := range o.e.requests() {
		for len(clients) > 0 && clients[0].began.Before(r.Time) {
			a.client, a.asked, clients = clients[0], clients[0].began, clients[1:]
		}
		switch r.Op {
		case faults.OpStart, faults.OpPartsStart:
			k.sessions++
		}
		a.request(o.t, r)
		k.received(r)
	}
	k.again += a.again
	k.discarded = max(k.discarded, a.discarded)
	for name := range a.there {
		o.t.Errorf("%s is left", name)
	}
}

// accounting follows the requests of one object.
type accounting struct {
	acknowledged map[string]int64  // the committed offset in the last reply, by object
	held         map[string]int64  // the offset up to which the service has the bytes of a session, by object
	there        map[string]bool   // temporary objects
	parts        map[string]partAt // what the service has of the multipart upload, by number
	client       targetClient      // the last one that began
	asked        time.Time         // when it began, because it must ask what the service has, or when it asked for the parts later
	uploads      int               // multipart uploads
	starter      targetClient      // which began the upload
	way          string            // the object of the session, the directory of the temporary objects, or the multipart upload

	again     int64 // committed bytes that were sent again
	discarded int64 // the most bytes of a session at the destination that was left for parts
}

// partAt is a part of a multipart upload, and when the service had it.
type partAt struct {
	time time.Time
	size int64
}

func (a *accounting) request(t *testing.T, r fakegcs.Request) {
	temporary := strings.HasPrefix(r.Object, "gcsup-parts/")
	switch r.Op {
	case faults.OpStart:
		way := r.Object
		if temporary {
			way = path.Dir(r.Object)
		}
		a.begin(way, r.Object)
	case faults.OpPut, faults.OpFinalize:
		if r.Op == faults.OpFinalize && temporary {
			a.there[r.Object] = true
		}
		if strings.HasPrefix(r.ContentRange, "bytes */") {
			break // the service has all bytes, but was killed before it made the object
		}
		var from int64
		if _, err := fmt.Sscanf(r.ContentRange, "bytes %d-", &from); err != nil {
			t.Fatalf("Content-Range %q: %v", r.ContentRange, err)
		}
		a.again += max(a.acknowledged[r.Object]-from, 0)
		a.held[r.Object] = max(a.held[r.Object], from+r.Received-r.Received%(256<<10))
	case faults.OpPartsStart:
		a.uploads++
		a.begin(fmt.Sprint("multipart upload ", a.uploads), "")
	case faults.OpPartsList:
		a.asked = r.Time
	case faults.OpPartsPut:
		_, number, _ := strings.Cut(r.Path, "partNumber=")
		if had, ok := a.parts[number]; ok && had.time.Before(a.asked) {
			a.again += r.Received
		}
		if r.Status == 200 {
			a.parts[number] = partAt{r.Time.Add(r.Elapsed), r.Received}
		}
	case faults.OpDelete:
		if r.Status == 204 || r.Status == 404 {
			delete(a.there, r.Object)
		}
	}
	var last int64
	if _, err := fmt.Sscanf(r.Range, "bytes=0-%d", &last); err == nil {
		a.acknowledged[r.Object] = last + 1
	}
}

// begin counts what the service has of the upload before, when another one begins, or another session
// for the same object. A client may leave a session at the destination that it started itself. It may be killed
// before it begins the next upload.
func (a *accounting) begin(way, object string) {
	left := a.held[object]
	if way != a.way {
		left = 0
		for _, n := range a.held {
			left += n
		}
		for _, p := range a.parts {
			left += p.size
		}
		clear(a.held)
		clear(a.acknowledged)
		clear(a.parts)
	}
	if a.way == "x" && a.starter.divided() {
		a.discarded = max(a.discarded, left)
	} else {
		a.again += left
	}
	a.way, a.starter = way, a.client
	a.acknowledged[object], a.held[object] = 0, 0
}

// divided reports whether the client left a session because its first bytes were slow.
func (c targetClient) divided() bool {
	return slices.ContainsFunc(c.lines(), func(l line) bool { return l.Type == "divided" })
}
