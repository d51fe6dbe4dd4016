package fakegcs_test

import (
	"fmt"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// A foreign write of any size needs little memory, and Close ends it.
func TestLargeForeignWrite(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends many MiB, or many requests")
	}
	large := func(n int64) *fakegcs.Options {
		return &fakegcs.Options{NoMD5: true, Faults: []faults.Fault{{Match: faults.Match{Op: faults.OpQuery}, Do: faults.Action{Effect: faults.EffectForeignWrite, Bytes: n}}}}
	}
	w := newWorld(t, large(1<<30))
	uri := w.start("x")
	w.put(uri, 0, q+5, fmt.Sprint(q+5+1<<30))
	before := heap()
	if got := w.committed(uri); got != fmt.Sprintf("bytes=0-%d", q+1<<30-1) {
		t.Errorf("committed %q", got)
	}
	if after := heap(); after > before+256<<20 { // the whole write would be 1 GiB
		t.Errorf("a foreign write of 1 GiB uses %d bytes", after-before)
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
