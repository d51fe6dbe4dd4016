package metrics

import (
	"fmt"
	"sync"
	"time"

	"gcsup/upload"
)

// lastingTrouble is the time after which failures make a command unhealthy.
const lastingTrouble = 5 * time.Minute

// trouble records failures without progress, for /healthz. Progress is an upload that is done, or a byte that
// became committed. Bytes that were only sent are none: a service that refuses them has read them.
type trouble struct {
	mu          sync.Mutex
	first, last time.Time // failures since the last progress; zero if there are none
}

// observe records the failure or the progress of an event.
func (t *trouble) observe(e upload.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case e.Kind == upload.Done, e.CommittedDelta > 0:
		t.first, t.last = time.Time{}, time.Time{}
	case e.Kind == upload.Waiting, e.Kind == upload.Failed:
		if t.last = e.Time; t.first.IsZero() {
			t.first = e.Time
		}
	}
}

// lasting returns an error if failures have lasted for lastingTrouble, and the last one is not older than
// that. An old failure is none: a long request may be under way, which shows its progress when it ends.
func (t *trouble) lasting(now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last.Sub(t.first) < lastingTrouble || now.Sub(t.last) > lastingTrouble {
		return nil
	}
	return fmt.Errorf("requests have failed for %v, and nothing was committed meanwhile", now.Sub(t.first).Round(time.Second))
}
