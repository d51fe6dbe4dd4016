package fleet_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"gcsup/fleet/internal/fleet"
	"gcsup/internal/require"
)

// otherEndpoint returns another name of the service.
func (w *world) otherEndpoint() string {
	w.t.Helper()
	other := strings.Replace(w.gcs.URL, "127.0.0.1", "localhost", 1)
	if other == w.gcs.URL {
		w.t.Fatalf("the service is at %s", other)
	}
	return other
}

// dataRequests returns how many requests for objects of the bucket the service got.
func (w *world) dataRequests() (n int) {
	for _, r := range w.gcs.Requests() {
		if r.Bucket == bucket && r.Object != "" {
			n++
		}
	}
	return n
}

// TestOtherEndpoint starts a worker whose endpoint is not that of the submission. It sends nothing, and continues to
// run. A worker with the right endpoint uploads the files. Without one, they become dead letters, which can be retried.
func TestOtherEndpoint(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"a": 1000, "large": 9 << 20})
	other := w.otherEndpoint()
	elsewhere := func(o *fleet.WorkerOptions) { o.Upload.Endpoint, o.MaxFailures, o.UntilEmpty = other, 1, false }
	before := w.dataRequests()
	wrong := w.start("wrong", func(o *fleet.WorkerOptions) {
		elsewhere(o)
		o.MissingFor = time.Minute
	})
	w.await("tried", func() bool { return w.status(q).Retried == 2 })
	if after := w.dataRequests(); after != before {
		t.Errorf("%d requests for objects", after-before)
	}
	w.run(t.Context(), w.worker(q, "right", nil))
	w.check()
	w.wantLetters(q, nil)
	select {
	case <-wrong.done:
		t.Error("a message for another endpoint has ended a worker")
	default:
	}

	w, q = submitted(t, nil, map[string]int{"b": 1000})
	other = w.otherEndpoint()
	var log logBuffer
	w.ends(w.worker(q, "wrong", func(o *fleet.WorkerOptions) {
		elsewhere(o)
		o.UntilEmpty, o.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
	}), fleet.ErrFilesFailed)
	if text := log.String(); !strings.Contains(text, fleet.ErrEndpoint.Error()) || !strings.Contains(text, other) || !strings.Contains(text, w.gcs.URL) {
		t.Errorf("the log does not name both endpoints: %s", text)
	}
	err := q.Failed(t.Context(), func(_ string, l fleet.DeadLetter) error {
		if l.Kind != "endpoint" || !strings.Contains(l.Reason, other) || !strings.Contains(l.Reason, w.gcs.URL) || !strings.Contains(l.Reason, "--endpoint") {
			t.Errorf("dead letter %+v, want both endpoints and what to do", l)
		}
		return nil
	})
	require.NoError(t, err)
	w.wantLetters(q, map[string]string{"tree/b": "endpoint"})
	must(q.RetryFailed(t.Context()))
	w.ends(w.worker(q, "right", nil), nil)
	w.check()
}
