package bucketstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/bucket"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
)

const ttl = 2 * time.Minute

// begin reports whether a request can begin now, without a renewal.
func begin(l state.Lease) error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, end, err := l.Begin(ctx)
	if err == nil {
		end()
	}
	return err
}

// Begin acquires the lease again after a Delete that succeeded or whose outcome is not known. The
// fencing number is then greater than that of another process that held it meanwhile.
func TestBeginAfterDelete(t *testing.T) {
	for _, lost := range []bool{true, false} {
		inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
			first, second := w.start("first"), w.start("second")
			l := take(t, first, "a")
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if lost {
				addFaults(t, w, faults.Fault{Match: faults.Match{Method: "DELETE"}, Times: 1, Do: faults.Action{Effect: faults.EffectLoseReply}})
			}
			if err := l.Delete(ctx); (err != nil) != lost {
				t.Fatal(err)
			}
			other := take(t, second, "a")
			require.NoError(t, other.Release(t.Context(), nil))
			_, end, err := l.Begin(t.Context())
			require.NoError(t, err)
			end()
			if l.Fence() <= other.Fence() {
				t.Errorf("fencing number %d after %d", l.Fence(), other.Fence())
			}
			if _, err := second.Acquire(t.Context(), "a"); !errors.Is(err, state.ErrInUse) {
				t.Errorf("a second lease: %v", err)
			}
		})
	}
}

// A lease counts from the write that the service executed. The reply to the first write is lost, and
// the next ones do not arrive for most of the TTL. The last one must not be answered by the first reply.
func TestRepeatedWriteIsExecuted(t *testing.T) {
	write := faults.Match{Op: faults.OpInsert, Bucket: "state"}
	inBubble(t, &fakegcs.Options{CreateBuckets: true, Faults: []faults.Fault{
		{Match: write, Do: faults.Action{Effect: faults.EffectLoseReply}},
		{Match: write, Times: 9, Do: faults.Action{Effect: faults.EffectReset}},
	}}, func(t *testing.T, w *world) {
		first, second := w.start("first"), w.start("second")
		began := time.Now()
		l := take(t, first, "a")
		if took := time.Since(began); took < ttl/2 || took > ttl {
			t.Fatalf("the lease was acquired after %v", took)
		}
		time.Sleep(time.Until(began.Add(ttl + 2*time.Second)))
		other, err := second.Acquire(t.Context(), "a")
		if err == nil && begin(l) == nil {
			t.Error("two processes have the lease")
		}
		if err == nil {
			_ = other.Release(t.Context(), nil)
		}
		tokens := map[string]bool{}
		for _, r := range w.server.Requests() {
			if r.Op == faults.OpInsert && (r.IdempotencyToken == "" || tokens[r.IdempotencyToken]) {
				t.Errorf("a write has the token %q", r.IdempotencyToken)
			}
			tokens[r.IdempotencyToken] = true
		}
	})
}

// A reply whose end is missing counts as lost, and not as a refusal.
func TestCutReplies(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
		first, second := w.start("first"), w.start("second")
		require.NoError(t, take(t, first, "a").Release(t.Context(), newUpload(t, w.client, "a")))
		addFaults(t, w, faults.Fault{Match: faults.Match{Bucket: "state"}, Times: 5, Do: faults.Action{Effect: faults.EffectTruncateReply, Bytes: 20}})
		take(t, second, "a")
	})
}

// If the service refuses every write although the generation is right, the lease is not lost, and
// the number of requests is limited.
func TestRefusedWithoutReason(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
		first, second := w.start("first"), w.start("second")
		l := take(t, first, "a")
		w.refuse(faults.Match{Method: "POST", Bucket: "state"}, -1, 412)
		for _, err := range []error{l.Save(t.Context(), newUpload(t, w.client, "a")), acquire(t, second, "b")} {
			if err == nil || errors.Is(err, state.ErrInUse) {
				t.Error(err)
			}
		}
		if n := len(w.server.Requests()); n > 60 {
			t.Errorf("%d requests", n)
		}
		require.NoError(t, context.Cause(l.Context()))
	})
}

func acquire(t *testing.T, s state.Store, id string) error {
	t.Helper()
	_, err := state.Acquire(t.Context(), s, id)
	return err
}

// A save that waits for another write, which the network delays, ends with its context.
func TestSaveBehindAnotherWrite(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
		first := w.start("first")
		l, saved := take(t, first, "a"), newUpload(t, w.client, "a")
		first.suspend()
		written := make(chan error)
		go func() { written <- l.Save(t.Context(), saved) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		time.AfterFunc(5*time.Second, first.wake)
		if err := l.Save(ctx, saved); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		require.NoError(t, <-written)
	})
}

// The lease is lost if another program deletes its object.
func TestObjectDeleted(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
		l := take(t, w.start("first"), "a")
		if r := bucket.Delete(t.Context(), w.client, session.Spec{Bucket: "state", Object: "uploads/a.gcsup"}); r.Status != 204 {
			t.Fatal(r.Status, r.Err)
		}
		err := l.Save(t.Context(), newUpload(t, w.client, "a"))
		if !errors.Is(err, state.ErrInUse) || !strings.Contains(err.Error(), "was deleted") {
			t.Error(err)
		}
	})
}

// One process cannot hold two leases of an upload. When the first one has expired, it can acquire
// another, which its Store then uses.
func TestTwiceInOneProcess(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
		first := w.start("first")
		l := take(t, first, "a")
		require.NoError(t, l.Save(t.Context(), newUpload(t, w.client, "a")))
		if err := acquire(t, first, "a"); !errors.Is(err, state.ErrInUse) {
			t.Fatal(err)
		}
		w.down()
		time.Sleep(ttl + 2*time.Second)
		w.server.ClearFaults()
		l2, err := first.Acquire(t.Context(), "a")
		require.NoError(t, err) // otherwise the renewal came first
		if err := l.Release(t.Context(), nil); !errors.Is(err, state.ErrInUse) {
			t.Errorf("release of the first: %v", err)
		}
		require.NoError(t, first.Save(t.Context(), newUpload(t, w.client, "a")))
		require.NoError(t, l2.Release(t.Context(), nil))
	})
}

func addFaults(t *testing.T, w *world, faults ...faults.Fault) {
	t.Helper()
	require.NoError(t, w.server.AddFaults(faults...))
}
