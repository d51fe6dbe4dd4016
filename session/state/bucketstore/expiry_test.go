package bucketstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/bucket"
	"gcsup/internal/require"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
)

// A process that meets a lease for the first time after it has expired acquires it at once. No object
// is left of the comparison of the times.
func TestExpiredLongAgo(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
		first := w.start("first")
		require.NoError(t, take(t, first, "a").Save(t.Context(), newUpload(t, w.client, "a")))
		first.suspend()
		time.Sleep(time.Hour)
		second := w.start("second")
		if locked, err := second.Locked(t.Context(), "a"); err != nil || locked {
			t.Errorf("Locked: %v, %v", locked, err)
		}
		began := time.Now()
		take(t, second, "a")
		if took := time.Since(began); took > time.Second {
			t.Errorf("acquired after %v", took)
		}
		if left := w.clocks(); len(left) > 0 {
			t.Errorf("%q are left", left)
		}
		first.wake()
	})
}

// A lease lasts as long as its holder chose, also for a process that chose another duration.
func TestDurationOfEachHolder(t *testing.T) {
	for _, lasts := range []time.Duration{10 * time.Second, 10 * time.Minute} {
		inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
			first, second, third := w.start("first", func(o *bucketstore.Options) { o.TTL = lasts }), w.start("second"), w.start("third")
			require.NoError(t, take(t, first, "a").Save(t.Context(), newUpload(t, w.client, "a")))
			check := func(p process, holder string, want time.Duration) {
				t.Helper()
				_, err := p.Acquire(t.Context(), "a")
				if held, ok := errors.AsType[*state.HeldError](err); !ok || held.Message != holder || held.TTL != want || held.Left > want {
					t.Errorf("%+v, want a lease of %v", held, want)
				}
			}
			first.suspend()
			defer first.wake()
			time.Sleep(lasts - 2*time.Second)
			check(second, "first", lasts)
			time.Sleep(2 * time.Second)
			take(t, second, "a")
			check(third, "second", ttl)
			second.suspend()
			defer second.wake()
			time.Sleep(ttl - time.Second)
			check(third, "second", ttl)
			time.Sleep(2 * time.Second)
			take(t, third, "a")
		})
	}
}

// While a lease is valid, no comparison writes to the bucket: neither the calls that only read, nor a
// process that waits.
func TestValidLeaseCostsNoWrite(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
		first, second := w.start("first"), w.start("second")
		take(t, first, "a")
		for range 20 {
			time.Sleep(30 * time.Second)
			if locked, err := second.Locked(t.Context(), "a"); err != nil || !locked {
				t.Errorf("Locked: %v, %v", locked, err)
			}
			if err := acquire(t, second, "a"); !errors.Is(err, state.ErrInUse) {
				t.Errorf("Acquire: %v", err)
			}
		}
		for _, r := range w.server.Requests() {
			if strings.HasSuffix(r.Object, bucketstore.ClockSuffix) {
				t.Fatalf("%s of %s", r.Op, r.Object)
			}
		}
	})
}

// A reader that must not write takes an expired lease for a valid one.
func TestLockedReadOnly(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
		first, second := w.start("first"), w.start("second")
		take(t, first, "a")
		first.suspend()
		time.Sleep(time.Hour)
		w.refuse(faults.Match{Method: "POST"}, -1, 403)
		if locked, err := second.Locked(t.Context(), "a"); err != nil || !locked {
			t.Errorf("Locked: %v, %v", locked, err)
		}
		w.server.ClearFaults()
		first.wake()
	})
}

// Sweep deletes what a comparison of times left because the process died, and no other object.
func TestSweepClocks(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
		first, second := w.start("first"), w.start("second")
		take(t, first, "a")
		first.suspend()
		time.Sleep(time.Hour)
		w.refuse(faults.Match{Method: "DELETE"}, 1, 503)
		take(t, second, "a")
		first.wake()
		if n := len(w.clocks()); n != 1 {
			t.Fatalf("%d objects are left, want 1: %q", n, w.objects())
		}
		mine := map[string]string{ // names and contents
			"uploads/mine" + bucketstore.ClockSuffix:                              "",
			"uploads/" + strings.Repeat("A", 26) + bucketstore.ClockSuffix:        "content",
			"uploads/" + strings.Repeat("A/", 13) + bucketstore.ClockSuffix:       "",
			"uploads/" + strings.Repeat("A", 26) + bucketstore.ClockSuffix + ".x": "",
		}
		for name, content := range mine {
			w.write(name, content)
		}
		if n, err := second.Sweep(t.Context(), true); n != 0 || err != nil || len(w.clocks()) != 4 {
			t.Errorf("a dry run swept %d, %v; left %q", n, err, w.objects())
		}
		if n, err := second.Sweep(t.Context(), false); n != 0 || err != nil || len(w.clocks()) != 3 {
			t.Errorf("swept %d, %v; left %q", n, err, w.objects())
		}
		for name := range mine {
			if _, ok := w.server.Object("state", name); !ok {
				t.Errorf("%s of another program was deleted", name)
			}
		}
	})
}

// objects returns the names of the objects in the state bucket.
func (w *world) objects() (names []string) {
	w.t.Helper()
	page, r := bucket.List(w.t.Context(), w.client, bucket.Query{Bucket: "state"})
	if page == nil {
		w.t.Fatal(r.Status, r.Err)
	}
	for _, o := range page.Objects {
		names = append(names, o.Name)
	}
	return names
}

// clocks returns the names of the objects that were written to read the service's clock.
func (w *world) clocks() []string {
	return slices.DeleteFunc(w.objects(), func(name string) bool { return !strings.HasSuffix(name, bucketstore.ClockSuffix) })
}
