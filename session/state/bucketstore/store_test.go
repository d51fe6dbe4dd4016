package bucketstore_test

import (
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
)

// The error of another caller has the process of the holder, and when it acquired the lease by
// the service's clock. A renewal does not change that; Delete ends the lease.
func TestHolder(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true, ClockSkew: time.Hour}, func(t *testing.T, w *world) {
		first, second := w.start("", func(o *bucketstore.Options) { o.TTL = time.Minute }), w.start("second")
		host, err := os.Hostname()
		require.NoError(t, err)
		check := func(since time.Time) {
			t.Helper()
			_, err := second.Acquire(t.Context(), "a")
			held, ok := errors.AsType[*state.HeldError](err)
			if !ok || held.PID != os.Getpid() || held.Host != host || held.Message != "" || held.TTL != time.Minute || !held.Since.Equal(since.Add(time.Hour)) {
				t.Errorf("%+v, want one since %v", held, since.Add(time.Hour))
			}
		}
		began := time.Now()
		l := take(t, first, "a")
		check(began)
		time.Sleep(time.Hour)
		check(began)
		require.NoError(t, l.Save(t.Context(), newUpload(t, w.client, "a")))
		check(began)
		require.NoError(t, l.Delete(t.Context()))
		began = time.Now()
		_, end, err := l.Begin(t.Context())
		require.NoError(t, err)
		end()
		check(began)
		time.Sleep(time.Hour)
		check(began)
	})
}

// Sweep deletes only the lease of a process that died before it saved the upload.
func TestSweep(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
		dead, alive := w.start("dead"), w.start("alive")
		take(t, dead, "empty")
		take(t, dead, "taken-since")
		require.NoError(t, take(t, dead, "saved").Save(t.Context(), newUpload(t, w.client, "saved")))
		take(t, alive, "held")
		w.write("uploads/mine.gcsup", "")
		dead.suspend()
		sweep := func(want int, dryRun bool) {
			t.Helper()
			if n, err := alive.Sweep(t.Context(), dryRun); n != want || err != nil {
				t.Errorf("swept %d, %v, want %d", n, err, want)
			}
		}
		left := func(want ...string) {
			t.Helper()
			for _, id := range []string{"empty", "held", "mine", "saved", "taken-since"} {
				if _, ok := w.server.Object("state", "uploads/"+id+".gcsup"); ok != slices.Contains(want, id) {
					t.Errorf("%s: %v, want %v", id, ok, !ok)
				}
			}
		}
		sweep(0, false)
		left("empty", "held", "mine", "saved", "taken-since")
		time.Sleep(2 * ttl)
		take(t, alive, "taken-since")
		sweep(1, true)
		left("empty", "held", "mine", "saved", "taken-since")
		sweep(1, false)
		left("held", "mine", "saved", "taken-since")
		dead.wake()
	})
}

// The first request is repeated if it has no reply.
func TestNoFirstReply(t *testing.T) {
	stall := faults.Fault{Match: faults.Match{Op: faults.OpBucketGet}, Do: faults.Action{Effect: faults.EffectStall}}
	inBubble(t, &fakegcs.Options{CreateBuckets: true, Faults: []faults.Fault{stall}}, func(t *testing.T, w *world) {
		began := time.Now()
		w.start("first")
		if d := time.Since(began); d < time.Second || d > 30*time.Second {
			t.Errorf("opened after %v", d)
		}
	})
}
