package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/fleet/internal/fleet"
	"gcsup/internal/require"
)

// failing returns a fault for all requests of an operation on an object.
func failing(op faults.Op, object string) faults.Fault {
	return faults.Fault{
		Match: faults.Match{Op: op, Bucket: bucket, Object: object}, Times: -1,
		Do: faults.Action{Effect: faults.EffectStatus, Status: 503},
	}
}

// letters returns the kinds of the dead letters, by object.
func (w *world) letters(q *fleet.Queue) map[string]string {
	w.t.Helper()
	kinds := map[string]string{}
	err := q.Failed(w.t.Context(), func(_ string, l fleet.DeadLetter) error {
		kinds[l.Task.Files[0].Object] = l.Kind
		return nil
	})
	require.NoError(w.t, err)
	return kinds
}

// status reads the status of the fleet.
func (w *world) status(q *fleet.Queue) *fleet.Status {
	w.t.Helper()
	return must(q.Status(w.t.Context()))
}

// TestDeadLetters makes some files of a group and a large file fail. They become dead letters, and
// the others are uploaded. After the cause is removed, a retry uploads them.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	refused := failing(faults.OpPut, "tree/large")
	refused.Do.Status = 403
	w := newWorld(t, &fakegcs.Options{Faults: []faults.Fault{refused}})
	w.fill("small/%d", 10, 1000)
	w.write("large", 9<<20, 1)
	w.write("other", 9<<20, 2)
	w.write("small/gone", 10, 3)
	q := w.queue()
	w.submit(q)
	broken := filepath.Join(w.tree, "small/3")
	for _, path := range []string{filepath.Join(w.tree, "small/gone"), broken} {
		require.NoError(t, os.Remove(path))
	}
	require.NoError(t, os.Mkdir(broken, 0o700))
	two := func(o *fleet.WorkerOptions) { o.MaxFailures = 2 }
	w.run(t.Context(), w.worker(q, "a", two))
	w.wantLetters(q, map[string]string{"tree/small/3": "no_input", "tree/large": "permission", "tree/small/gone": "no_input"})
	if s := w.status(q); s.Failed != 3 || s.Done.Files != 10 || s.Tasks != 0 || s.Retried != 2 || len(s.Failures) != 2 {
		t.Errorf("status %+v", s)
	}
	w.gcs.ClearFaults()
	w.write("small/gone", 10, 3)
	require.NoError(t, os.Remove(broken))
	w.write("small/3", 1000, 3)
	if n, err := q.RetryFailed(t.Context()); n != 3 || err != nil {
		t.Errorf("retry: %d, %v", n, err)
	}
	w.run(t.Context(), w.worker(q, "b", func(o *fleet.WorkerOptions) { o.AcceptChanged = true })) // the files are newer
	w.check()
	w.wantLetters(q, nil)
	if got := w.submit(q); got.Finished != 2 && got.Files > 11 {
		t.Errorf("submit after the retry: %+v", got)
	}
	w.run(t.Context(), w.worker(q, "c", two))
	w.check()
	if s := w.status(q); s.Done.Files != 13 || s.Waiting.Files != 0 {
		t.Errorf("status after the tree was submitted again: %+v, want 13 files", s)
	}
}

// TestReplaced replaces an object after the submit. The worker does not replace it again.
func TestReplaced(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"a": 1000, "b": 9 << 20})
	for _, name := range []string{"a", "b"} {
		put(t, w, "tree/"+name, []byte("of another program"))
	}
	w.run(t.Context(), w.worker(q, "a", nil))
	w.wantLetters(q, map[string]string{"tree/a": "precondition", "tree/b": "precondition"})
	for _, name := range []string{"tree/a", "tree/b"} {
		if data, err := w.gcs.ReadObject(bucket, name); string(data) != "of another program" {
			t.Errorf("%s was replaced: %v", name, err)
		}
	}
	if got := w.submit(q); got.Files != 2 {
		t.Errorf("second submit: %+v, want both files", got)
	}
	w.wantLetters(q, nil)
	w.run(t.Context(), w.worker(q, "b", nil))
	for _, name := range []string{"a", "b"} {
		data := must(os.ReadFile(filepath.Join(w.tree, name)))
		if got, err := w.gcs.ReadObject(bucket, "tree/"+name); !slices.Equal(got, data) {
			t.Errorf("%s is not the file that was submitted again: %v", name, err)
		}
	}
}

// put makes an object without the fleet.
func put(t *testing.T, w *world, name string, data []byte) {
	t.Helper()
	if _, err := w.uploader().Bytes(t.Context(), data, spec(name)); err != nil {
		t.Fatal(err)
	}
}

// TestOutage makes the service fail for some seconds, with all requests, or with those that write to the bucket. No file
// becomes a dead letter, and all are uploaded afterwards.
func TestOutage(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string][]faults.Fault{
		"all":    {{Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}},
		"writes": {failing(faults.OpInsert, ""), failing(faults.OpPut, "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.fill("%02d", 48, ownTask)
			w.fill("small/%02d", 50, 1000)
			w.write("large", 9<<20, 1)
			w.write("other", 9<<20, 2)
			q := w.queue()
			w.submit(q)
			var four []*fleet.Worker
			for i := range 4 { // each reads the state bucket when it starts
				four = append(four, w.worker(w.queue(), fmt.Sprintf("w%d", i), func(o *fleet.WorkerOptions) { o.MaxFailures = 2 }))
			}
			require.NoError(t, w.gcs.AddFaults(plan...))
			time.AfterFunc(8*time.Second, w.gcs.ClearFaults)
			var workers sync.WaitGroup
			for _, worker := range four {
				workers.Go(func() { w.run(t.Context(), worker) })
			}
			workers.Wait()
			w.wantLetters(q, nil)
			w.check()
		})
	}
}

// TestOutageOfBucket makes a bucket fail whose files keep all places of a worker, and which it tries for long. The files of
// another bucket are uploaded meanwhile.
func TestOutageOfBucket(t *testing.T) {
	t.Parallel()
	const other = "other-bucket"
	w := newWorld(t, nil)
	w.fill("%d", 4, 2<<20)
	q := w.queue()
	w.submit(q)
	s := w.submission("tree/")
	s.Listing.Bucket = other
	must(fleet.Submit(t.Context(), q, s))
	require.NoError(t, w.gcs.AddFaults(faults.Fault{Match: faults.Match{Bucket: bucket}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}))
	v := w.start("a", func(o *fleet.WorkerOptions) {
		o.Jobs, o.Upload.RetryFor, o.Upload.Policy.Maximum = 2, time.Hour, 200*time.Millisecond
	})
	w.await("uploaded", func() bool {
		for i := range 4 {
			if _, ok := w.gcs.Object(other, fmt.Sprintf("tree/%d", i)); !ok {
				return false
			}
		}
		return true
	})
	w.gcs.ClearFaults()
	<-v.done
	w.wantLetters(q, nil)
	w.check()
}

// TestCancel empties the queue while a worker uploads.
func TestCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &fakegcs.Options{Rate: 1 << 20})
	w.fill("%d", 8, 9<<20)
	q := w.queue()
	w.submit(q)
	w.afterPuts("", 1, func() {
		go func() {
			if n, err := q.Cancel(context.WithoutCancel(t.Context())); err != nil || n != 8 {
				t.Errorf("cancel: %d tasks, %v", n, err)
			}
		}()
	})
	w.run(t.Context(), w.worker(q, "a", func(o *fleet.WorkerOptions) { o.Upload.ChunkSize = 256 << 10 }))
	if s := w.status(q); s.Tasks != 0 || s.Done.Files+s.Waiting.Files+s.Active.Files != 0 {
		t.Errorf("status after cancel: %+v", s)
	}
	ops := w.gcs.Stats().Ops
	if ops[faults.OpStart] == 0 || ops[faults.OpCancel] != ops[faults.OpStart] {
		t.Errorf("%d sessions were started, and %d canceled", ops[faults.OpStart], ops[faults.OpCancel])
	}
}

// TestDrain checks that workers take no tasks while the fleet drains.
func TestDrain(t *testing.T) {
	t.Parallel()
	w, q := submitted(t, nil, map[string]int{"a": 1000})
	require.NoError(t, q.SetDrain(t.Context(), true))
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	w.run(ctx, w.worker(q, "a", nil))
	if s := w.status(q); s.Tasks != 1 || !s.Draining {
		t.Errorf("status of a fleet that drains: %+v", s)
	}
	require.NoError(t, q.SetDrain(t.Context(), false))
	w.run(t.Context(), w.worker(q, "b", nil))
	w.check()
}
