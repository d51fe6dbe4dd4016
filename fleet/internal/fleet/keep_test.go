package fleet_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gcsup/fleet/internal/fleet"
	"gcsup/internal/require"
)

// TestKeep uploads a tree with a worker that keeps its records for a second. After that, the tree can be submitted again,
// with the same settings and with others, as if the records were there, except that workers look at the objects.
func TestKeep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("a", 1000, 1)
	w.write("large", 2<<20, 2)
	q := must(fleet.OpenQueue(t.Context(), w.connect(), fleet.QueueOptions{Keep: time.Second}))
	run := func(made int) {
		t.Helper()
		require.NoError(t, w.worker(q, "a", nil).Run(t.Context()))
		for _, name := range []string{"tree/a", "tree/large"} {
			if got := w.made(name); got != made {
				t.Errorf("%s was made %d times, want %d", name, got, made)
			}
		}
		w.await("expired", func() bool { return w.status(q).Done.Files == 0 })
	}
	w.submit(q)
	run(1)
	if got := w.submit(q); got.Files != 2 || got.Finished != 0 {
		t.Errorf("submitted again: %+v, want 2 files", got)
	}
	run(1)
	s := w.submission("tree/")
	s.Settings.CacheControl = "no-store"
	must(fleet.Submit(t.Context(), q, s))
	run(2)
	if err := q.Settled(t.Context(), nil); err != nil {
		t.Errorf("the queue is not settled: %v", err)
	}
}

// TestOpenSubmissions submits two trees, one after the other. The progress is that of the second one.
func TestOpenSubmissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	q := w.queue()
	open := map[string]bool{}
	w.write("a", 1000, 1)
	w.write("b", 1000, 1)
	w.submit(q)
	w.run(t.Context(), w.worker(q, "a", nil))
	if got := w.status(q).Open(open); got != (fleet.Progress{}) {
		t.Errorf("progress %+v, want none", got)
	}
	must(fleet.Submit(t.Context(), q, w.submission("other/")))
	if got := w.status(q).Open(open); got.Done.Files != 0 || got.Left != (fleet.Count{Files: 2, Bytes: 2000}) {
		t.Errorf("progress %+v, want 2 files left", got)
	}
	w.run(t.Context(), w.worker(q, "b", nil))
	if got := w.status(q).Open(open); got.Done.Files != 2 || got.Left.Files != 0 {
		t.Errorf("progress %+v, want 2 files done", got)
	}
}

// TestNewerFormat puts a task of a newer format into the queue. A worker leaves it to a newer worker, whose consumer can
// exist beside that of the worker.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.write("a", 1000, 1)
	q := w.queue()
	must(w.connect().Request("gcsup.default.task4.00ff", []byte("newer"), 5e9))
	w.submit(q)
	w.start("a", func(o *fleet.WorkerOptions) { o.UntilEmpty = false })
	w.await("done", func() bool { return w.status(q).Done.Files == 1 })
	newer := must(must(jetstream.New(w.connect())).CreateConsumer(t.Context(), "gcsup-default", jetstream.ConsumerConfig{
		Durable: "workers4-x", FilterSubject: "gcsup.default.task4.*", AckPolicy: jetstream.AckExplicitPolicy,
	}))
	if msg, err := newer.Next(); err != nil || string(msg.Data()) != "newer" {
		t.Errorf("the newer worker gets %v", err)
	}
	if s := w.status(q); s.Tasks != 1 || s.Failed != 0 {
		t.Errorf("status %+v, want one task", s)
	}
}
