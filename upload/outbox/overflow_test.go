package outbox

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestLostNotification checks that a lost notification causes a scan, and that another error of the system is
// a warning, once.
func TestLostNotification(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := newScanner(t.TempDir(), func(string) {})
	var warnings atomic.Int64
	w := newWatcher(s.root, s, func(string) { warnings.Add(1) })
	if w.system == nil {
		t.Skip("this system has no notifications")
	}
	go w.run(ctx)
	scans := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		full := s.full
		s.full = false
		return full
	}
	scans() // the first one
	for _, err := range []error{fsnotify.ErrEventOverflow, errors.New("no more watches"), errors.New("again")} {
		w.system.Errors <- err
		for deadline := time.Now().Add(10 * time.Second); !scans(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("no scan after: %v", err)
			}
		}
		if lost := err != fsnotify.ErrEventOverflow; w.notified() == lost {
			t.Errorf("after %v: notified %v", err, w.notified())
		}
	}
	if n := warnings.Load(); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
}
