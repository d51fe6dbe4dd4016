package fleet_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/fleet/internal/fleet"
)

// TestWorkersOverlap checks that four workers upload at the same time, two files each: the first eight requests with data are
// answered only when all eight have arrived.
func TestWorkersOverlap(t *testing.T) {
	t.Parallel()
	const workers, jobs = 4, 2
	w := newWorld(t, nil)
	w.fill("%02d", 24, ownTask)
	w.submit(w.queue())
	hc := *w.gcs.Client()
	all := newGathering(workers*jobs, hc.Transport)
	hc.Transport = all
	timer := time.AfterFunc(time.Minute, func() {
		t.Error("after a minute there are not eight requests at a time")
		all.open()
	})
	defer timer.Stop()
	var running sync.WaitGroup
	for i := range workers {
		worker := w.workerOf(w.queue(), &hc, fmt.Sprintf("w%d", i), func(o *fleet.WorkerOptions) { o.Jobs = jobs })
		running.Go(func() { w.run(t.Context(), worker) })
	}
	running.Wait()
	w.check()
}

// gathering is a transport that holds uploads to the bucket until a number of them are under way.
type gathering struct {
	http.RoundTripper
	missing int
	mu      sync.Mutex
	open    func()
	opened  chan struct{}
}

func newGathering(requests int, base http.RoundTripper) *gathering {
	g := &gathering{RoundTripper: base, missing: requests, opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	return g
}

func (g *gathering) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasPrefix(req.URL.Path, "/upload/storage/v1/b/"+bucket+"/") {
		g.mu.Lock()
		if g.missing--; g.missing == 0 {
			g.open()
		}
		g.mu.Unlock()
		<-g.opened
	}
	return g.RoundTripper.RoundTrip(req)
}

// measure runs workers until the queue is empty, and returns the time from the first object to the last.
func (w *world) measure(workers int) time.Duration {
	var running sync.WaitGroup
	for i := range workers {
		worker := w.worker(w.queue(), fmt.Sprintf("w%d", i), nil)
		running.Go(func() { w.run(w.t.Context(), worker) })
	}
	running.Wait()
	var first, last time.Time
	for _, r := range w.gcs.Requests() {
		if r.Bucket != bucket || r.Received == 0 {
			continue
		}
		if first.IsZero() || r.Time.Before(first) {
			first = r.Time
		}
		if end := r.Time.Add(r.Elapsed); end.After(last) {
			last = end
		}
	}
	return last.Sub(first)
}

const ownTask = 11 << 17 // the size of a file that has a task of its own
