//go:build linux

package fire_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// TestTakeover kills a worker in the middle of a request with a large file. Another worker continues
// in time at exactly the committed offset.
func TestTakeover(t *testing.T) {
	t.Parallel()
	const (
		size        = 16 << 20
		granularity = 256 << 10 // the service commits multiples of it
		onTheirWay  = 4 << 20   // the buffers between the killed process and the server
		limit       = ackWait + 3*time.Second
	)
	f := newFleet(t, "2MiB")
	f.cluster = startCluster(t, 3, nil)
	f.write("large", size, 1)
	f.submit()
	f.addWorkers(2, func() int { return 0 })
	for _, s := range f.slots {
		f.begin(s)
	}
	sent := func(s *slot) bool { return s.gcs.up.Load() > size/3 }
	if !await(time.Minute, func() bool { return sent(f.slots[0]) || sent(f.slots[1]) }) {
		f.logs()
		t.Fatal("no worker sends the file")
	}
	first, second := f.slots[0], f.slots[1]
	if !sent(first) {
		first, second = second, first
	}
	killed := time.Now()
	first.kill()
	if !poll(200*time.Millisecond, time.Minute, f.uploaded) {
		f.logs()
		t.Fatal("the file is not uploaded")
	}
	f.end(second)
	if got, err := f.emulator.object("data", "large"); err != nil || !bytes.Equal(got, f.files["large"]) {
		t.Errorf("the object is wrong (%v)", err)
	}

	var data []fakegcs.Request // requests with data
	var received, committed int64
	for _, r := range f.emulator.requests() {
		switch r.Op {
		case faults.OpQuery:
			// The server may still read bytes of the killed process that are on their way. The offset of
			// the reply is the one that counts.
			var last int64
			if _, err := fmt.Sscanf(r.Range, "bytes=0-%d", &last); err == nil {
				committed = last + 1
			}
		case faults.OpPut, faults.OpFinalize:
			data = append(data, r)
			received += r.Received
		}
	}
	if len(data) < 2 {
		t.Fatalf("%d requests with data", len(data))
	}
	cut, next := data[0], data[1]
	if lost := cut.Received - committed; lost >= granularity+onTheirWay {
		t.Errorf("%d bytes were committed of the %d that were received", committed, cut.Received)
	}
	var from int64
	if _, err := fmt.Sscanf(next.ContentRange, "bytes %d-", &from); err != nil || from != committed {
		t.Errorf("the second worker sent %q (%v), want it to begin at %d", next.ContentRange, err, committed)
	}
	if want := size + cut.Received - committed; received != want {
		t.Errorf("%d bytes were received, want %d", received, want)
	}
	took := next.Time.Sub(killed)
	if took > limit {
		t.Errorf("the upload continued after %v, want at most %v", took, limit)
	}
	t.Logf("killed at offset %d, continued there after %v", committed, took.Round(time.Millisecond))
}
