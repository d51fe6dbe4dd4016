package outbox

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowDisk takes a second for each sync.
type slowDisk struct {
	osDisk
	syncs atomic.Int64
	began atomic.Int64 // when the last one began
}

func (d *slowDisk) sync(string) error {
	d.began.Store(time.Now().UnixNano())
	d.syncs.Add(1)
	time.Sleep(time.Second)
	return nil
}

// TestGroupSync checks that calls share an fsync, and that each call gets one that began after the call.
func TestGroupSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDisk{}
		g := newGroupSync(d)
		var ended atomic.Int64
		for i := range 100 {
			go func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				called := time.Now().UnixNano()
				if err := g.sync("/dir"); err != nil {
					t.Error(err)
				}
				if d.began.Load() < called {
					t.Error("the fsync began before the call")
				}
				ended.Add(1)
			}()
		}
		time.Sleep(10 * time.Second)
		if n := d.syncs.Load(); n != 2 || ended.Load() != 100 {
			t.Errorf("%d syncs for %d calls, want 2 for 100", n, ended.Load())
		}
		if len(g.dirs) != 0 {
			t.Errorf("%d directories are kept", len(g.dirs))
		}
	})
}
