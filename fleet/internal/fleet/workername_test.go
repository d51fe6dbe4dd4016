package fleet_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/fleet/internal/fleet"
)

// TestWorkerName starts workers with one name. The second is refused while the first lives, and soon after the
// first was killed another one gets the name.
func TestWorkerName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	q := w.queue()
	stays := func(o *fleet.WorkerOptions) { o.UntilEmpty = false }
	first := w.start("a", stays)
	w.await("alive", func() bool { return len(w.status(q).Workers) > 0 })
	err := w.worker(q, "a", nil).Run(t.Context())
	if !errors.Is(err, fleet.ErrNameInUse) || !strings.Contains(err.Error(), "give this worker another --name") {
		t.Errorf("error %v, want ErrNameInUse", err)
	}
	workers := w.status(q).Workers
	if len(workers) != 1 {
		t.Fatalf("workers %+v, want the first", workers)
	}
	before := workers[0].Run
	first.kill()
	<-first.done
	killed := time.Now()
	w.start("a", stays)
	w.await("replaced", func() bool {
		return slices.ContainsFunc(w.status(q).Workers, func(s fleet.WorkerStatus) bool { return s.Run != before })
	})
	// Three intervals are 6 s. The keys of the first worker would expire after 30 s.
	if took := time.Since(killed); took > 15*time.Second {
		t.Errorf("the name was free %v after its worker was killed, want about 6 s", took)
	}
}
