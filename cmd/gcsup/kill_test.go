package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/testprocess"
	"gcsup/internal/testsize"
)

// trap is a server that kills the client after it received a number of bytes of
// the object.
type trap struct {
	http.Handler
	left atomic.Int64
	kill atomic.Pointer[testprocess.Process]
}

func (tr *trap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		r.Body = trapped{r.Body, tr}
	}
	tr.Handler.ServeHTTP(w, r)
}

type trapped struct {
	io.ReadCloser
	trap *trap
}

func (b trapped) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.trap.left.Add(-int64(n)) <= 0 {
		if p := b.trap.kill.Swap(nil); p != nil {
			p.Signal(os.Kill)
		}
	}
	return n, err
}

// TestKilledAtRandomBytes checks that a process that is killed repeatedly, at any
// byte, still creates the object with one session, and sends no committed byte
// twice.
func TestKilledAtRandomBytes(t *testing.T) {
	t.Parallel()
	size, kills := int64(24<<20+12345), 6
	if testing.Short() {
		size, kills = 9<<20+12345, 2
	}
	seed := testsize.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))

	dir := t.TempDir()
	source := filepath.Join(dir, "a.bin")
	if err := writeRandom(source, size, seed); err != nil {
		t.Fatal(err)
	}
	gcs, err := fakegcs.New(&fakegcs.Options{CreateBuckets: true})
	if err != nil {
		t.Fatal(err)
	}
	tr := &trap{Handler: gcs}
	srv := httptest.NewServer(tr)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { _ = gcs.Close() }) // before srv.Close: it ends requests of killed clients

	upload := func(kill bool) *testprocess.Process {
		tr.left.Store(1 << 62)
		p := testprocess.Start(t, exec.Command("gcsup", "cp", "--json", "--state-dir", filepath.Join(dir, "state"), "--endpoint", srv.URL, source, "gs://demo/a.bin"))
		if kill {
			// Kill mostly in the middle, and sometimes in the first or the last bytes.
			tr.kill.Store(p)
			tr.left.Store(1 + random.Int64N(size/int64(kills)*2))
		}
		p.Wait()
		tr.kill.Store(nil)
		return p
	}
	killed := 0
	for range kills {
		p := upload(true)
		if p.Wait() == 0 {
			break // fewer bytes were left than the trap waits for
		}
		if p.Wait() != -1 {
			t.Fatalf("it ended before it was killed: %s", p.Output())
		}
		killed++
	}
	if _, done := gcs.Object("demo", "a.bin"); !done {
		if p := upload(false); p.Wait() != 0 {
			t.Fatal(p.Output())
		}
	}
	t.Logf("killed %d times", killed)

	want, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	got, err := gcs.ReadObject("demo", "a.bin")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("object has %d bytes, error %v; want the %d bytes of the source", len(got), err, len(want))
	}
	// Sort by arrival, because a request of a killed client may end after the first
	// request of the next client.
	requests := gcs.Requests()
	slices.SortStableFunc(requests, func(a, b fakegcs.Request) int { return a.Time.Compare(b.Time) })
	starts, committed := 0, int64(0)
	for _, r := range requests {
		switch r.Op {
		case faults.OpStart:
			starts++
		case faults.OpPut, faults.OpFinalize:
			var from int64
			if _, err := fmt.Sscanf(r.ContentRange, "bytes %d-", &from); err != nil {
				t.Fatalf("Content-Range %q: %v", r.ContentRange, err)
			}
			if from != committed {
				t.Errorf("%s starts at byte %d, want the committed offset %d", r.Op, from, committed)
			}
		}
		if text, ok := strings.CutPrefix(r.Range, "bytes=0-"); ok {
			if _, err := fmt.Sscan(text, &committed); err != nil {
				t.Fatalf("Range %q: %v", r.Range, err)
			}
			committed++
		}
	}
	if starts != 1 {
		t.Errorf("%d sessions were started, want 1", starts)
	}
}
