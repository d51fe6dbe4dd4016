package fakegcs_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"gcsup/fakegcs"
)

// However much another client writes, it takes no memory, and the server can be
// closed meanwhile.
func TestLargeForeignWrite(t *testing.T) {
	large := func(n int64) *fakegcs.Options {
		return &fakegcs.Options{NoMD5: true, Faults: []fakegcs.Fault{{Match: fakegcs.Match{Op: fakegcs.OpQuery}, Do: fakegcs.Action{Effect: fakegcs.EffectForeignWrite, Bytes: n}}}}
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	w := newWorld(t, large(1<<30))
	uri := w.start("x")
	w.put(uri, 0, q+5, fmt.Sprint(q+5+1<<30))
	before := heap()
	if got := w.committed(uri); got != fmt.Sprintf("bytes=0-%d", q+1<<30-1) {
		t.Errorf("committed %q", got)
	}
	if after := heap(); after > before+256<<20 { // it would be all of it
		t.Errorf("a foreign write of 1 GiB holds %d bytes", after-before)
	}

	opts := large(5 << 40)
	opts.Discard = true
	w = newWorld(t, opts)
	uri = w.start("x")
	done := make(chan error)
	go func() {
		_, err := w.try("PUT", uri, nil, "Content-Range: bytes */*")
		done <- err
	}()
	for w.gcs.FaultReport()[0].Fired == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := w.gcs.Close(); err != nil {
		t.Error(err)
	}
	<-done
}
