package fleet_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fleet/internal/fleet"
)

// ledger returns a Ledger in the state bucket of the workers.
func (w *world) ledger() *fleet.Ledger {
	w.t.Helper()
	return must(fleet.NewLedger(w.gcs.Client(), w.gcs.URL, stateBucket, "uploads"))
}

// submitTo submits the tree to a destination, with a record in the state bucket.
func (w *world) submitTo(q *fleet.Queue, prefix string) {
	w.t.Helper()
	s := w.submission(prefix)
	s.Ledger = w.ledger()
	must(fleet.Submit(w.t.Context(), q, s))
}

// TestUntilEmptyLost loses the queue while a worker uploads. The worker does not end with success until
// all that was submitted before is submitted again and done.
func TestUntilEmptyLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &fakegcs.Options{Rate: 8 << 20})
	w.fill("%d", 20, 2<<20)
	q := w.queue()
	w.submitTo(q, "tree/")
	wiped := make(chan struct{})
	w.afterPuts("", 3, func() {
		go func() {
			defer close(wiped)
			w.wipe()
		}()
	})
	err := w.worker(q, "first", func(o *fleet.WorkerOptions) { o.Jobs, o.Upload.ChunkSize = 1, 1<<20 }).Run(t.Context())
	if <-wiped; !errors.Is(err, fleet.ErrQueueLost) || !strings.Contains(err.Error(), "20 files for gs://data-bucket/tree/ ") || !strings.Contains(err.Error(), "delete gs://state-bucket/uploads/submissions/default/") {
		t.Errorf("after the queue was lost: %v, want ErrQueueLost and the submission", err)
	}
	q = w.queue()
	w.submitTo(q, "copy/")
	w.ends(w.worker(q, "second", nil), fleet.ErrQueueLost)
	w.submitTo(q, "tree/")
	w.ends(w.worker(q, "third", nil), nil)
	w.check()
	// All submissions are done. A later loss of the queue loses nothing.
	w.wipe()
	q = w.queue()
	w.ends(w.worker(q, "fourth", nil), fleet.ErrUnknownTotal)
	w.submitTo(q, "copy/")
	w.ends(w.worker(q, "fifth", nil), nil)
}

// before is a transport that calls f once, before the first request for which is returns true.
type before struct {
	base http.RoundTripper
	is   func(*http.Request) bool
	once sync.Once
	f    func()
}

func (b *before) RoundTrip(req *http.Request) (*http.Response, error) {
	if b.is(req) {
		b.once.Do(b.f)
	}
	return b.base.RoundTrip(req)
}

// TestUntilEmptySubmitMeanwhile submits the tree again, with one more file, at the moment when a worker finds all files
// finished, and loses the queue. The worker does not end with success.
func TestUntilEmptySubmitMeanwhile(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]func(*http.Request) bool{
		"read": func(req *http.Request) bool { return req.URL.Query().Get("prefix") == "uploads/submissions/default/" },
		"written": func(req *http.Request) bool {
			return req.Method == http.MethodPost && strings.Contains(req.URL.Path, "/b/"+stateBucket+"/")
		},
	} {
		w := newWorld(t, nil)
		w.write("a", 1000, 1)
		q := w.queue()
		w.submitTo(q, "tree/")
		w.worker(q, "creates the key", nil)
		hc := *w.gcs.Client()
		hc.Transport = &before{base: hc.Transport, is: is, f: func() {
			w.write("b", 1000, 2)
			w.submitTo(q, "tree/")
			w.wipe()
		}}
		w.ends(w.workerOf(q, &hc, name, nil), fleet.ErrQueueLost)
	}
}
