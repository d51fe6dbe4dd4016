package bucketstore_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
)

// An upload that one process saved is loaded, listed and locked by another.
func TestSharedByProcesses(t *testing.T) {
	for name, seal := range map[string]func(*bucketstore.Options){"unsealed": func(*bucketstore.Options) {}, "sealed": sealed(1)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
				first, second := w.start("first", seal), w.start("second", seal)
				l := take(t, first, "a")
				token := newToken(t, w.client, "a")
				if _, err := second.Load(t.Context(), "a"); !errors.Is(err, state.ErrNoToken) {
					t.Errorf("before Save: %v", err)
				}
				if err := l.Save(t.Context(), token); err != nil {
					t.Fatal(err)
				}
				got, err := second.Load(t.Context(), "a")
				if err != nil || !bytes.Equal(encoded(t, got), encoded(t, token)) {
					t.Fatalf("loaded another Token: %v", err)
				}
				if ids, err := second.List(t.Context()); err != nil || !slices.Equal(ids, []string{"a"}) {
					t.Errorf("listed %v, %v", ids, err)
				}
				if locked, err := second.Locked(t.Context(), "a"); err != nil || !locked {
					t.Errorf("locked %v, %v", locked, err)
				}
				_, err = second.Acquire(t.Context(), "a")
				held, ok := errors.AsType[*state.HeldError](err)
				if !ok || held.Message != "first" || held.PID != os.Getpid() || held.Left <= 0 {
					t.Fatalf("acquire: %v", err)
				}
				token.Committed, token.HighWater = 1<<20, 2<<20
				if err := l.Release(t.Context(), token); err != nil {
					t.Fatal(err)
				}
				l = take(t, second, "a")
				if got, err := l.Load(t.Context()); err != nil || got.Committed != 1<<20 {
					t.Fatalf("after Release: %+v, %v", got, err)
				}
				if err := l.Delete(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := l.Release(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				if ids, err := first.List(t.Context()); err != nil || len(ids) > 0 {
					t.Errorf("listed %v, %v", ids, err)
				}
			})
		})
	}
}

// The error of another caller has the process of the holder, and when it acquired the lease by
// the service's clock. A renewal does not change that; Delete ends the lease.
func TestHolder(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true, ClockSkew: time.Hour}, func(t *testing.T, w *world) {
		first, second := w.start("", func(o *bucketstore.Options) { o.TTL = time.Minute }), w.start("second")
		host, err := os.Hostname()
		if err != nil {
			t.Fatal(err)
		}
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
		if err := l.Save(t.Context(), newToken(t, w.client, "a")); err != nil {
			t.Fatal(err)
		}
		check(began)
		if err := l.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		if _, end, err := l.Begin(t.Context()); err != nil {
			t.Fatal(err)
		} else {
			end()
		}
		check(began)
		time.Sleep(time.Hour)
		check(began)
	})
}

// The name of a holder, which any program with access to the bucket can write, has no
// control characters.
func TestHolderIsPrintable(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
		first, second := w.start("first"), w.start("second")
		l := take(t, first, "a")
		first.suspend()
		time.Sleep(time.Hour)
		body := "--x\r\nContent-Type: application/json\r\n\r\n" +
			`{"name": "uploads/a.gcsup", "metadata": {"gcsup-lease": "n", "gcsup-lease-ms": "60000", "gcsup-holder": "a\u001b[2J\n\u009b\u202eb"}}` +
			"\r\n--x\r\nContent-Type: text/plain\r\n\r\n\r\n--x--\r\n"
		hc := &http.Client{Transport: w.transport}
		resp, err := hc.Post("http://gcs.test/upload/storage/v1/b/state/o?uploadType=multipart", "multipart/related; boundary=x", strings.NewReader(body))
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		_ = resp.Body.Close()
		const want = "upload is in use by a [2J b since "
		if _, err = second.Acquire(t.Context(), "a"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("acquire: %q", err)
		}
		first.wake()
		synctest.Wait()
		if _, _, err := l.Begin(t.Context()); !errors.Is(err, state.ErrInUse) || !strings.Contains(err.Error(), "another process acquired it: "+want) {
			t.Errorf("begin: %q", err)
		}
	})
}

// Sweep deletes only the lease of a process that died before it saved the upload.
func TestSweep(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
		dead, alive := w.start("dead"), w.start("alive")
		take(t, dead, "empty")
		take(t, dead, "taken-since")
		if err := take(t, dead, "saved").Save(t.Context(), newToken(t, w.client, "saved")); err != nil {
			t.Fatal(err)
		}
		take(t, alive, "held")
		resp, err := (&http.Client{Transport: w.transport}).Post("http://gcs.test/upload/storage/v1/b/state/o?uploadType=media&name=uploads/mine.gcsup", "text/plain", strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
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

// The lease of a process that dies expires after one TTL. The next process that
// acquires it finds the last saved Token. If the first process was only suspended, it
// begins no request and saves nothing.
func TestTakeoverAfterTTL(t *testing.T) {
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(t *testing.T, w *world) {
		first, second := w.start("first"), w.start("second")
		l := take(t, first, "a")
		token := newToken(t, w.client, "a")
		if err := l.Save(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		// The lease is renewed for as long as the process lives.
		time.Sleep(time.Hour)
		if _, err := second.Acquire(t.Context(), "a"); !errors.Is(err, state.ErrInUse) {
			t.Fatalf("after an hour: %v", err)
		}
		first.suspend()
		suspended := time.Now()
		var taken state.Lease
		for taken == nil {
			time.Sleep(time.Second)
			taken, _ = second.Acquire(t.Context(), "a")
		}
		if d := time.Since(suspended); d < 45*time.Second || d > 2*time.Minute+2*time.Second {
			t.Errorf("taken after %v", d)
		}
		if taken.Fence() <= l.Fence() {
			t.Errorf("fencing number %d after %d", taken.Fence(), l.Fence())
		}
		first.wake()
		if _, _, err := l.Begin(t.Context()); !errors.Is(err, state.ErrInUse) {
			t.Errorf("Begin: %v", err)
		}
		<-l.Context().Done()
		token.Committed, token.HighWater = 1, 1
		for name, err := range map[string]error{"save": l.Save(t.Context(), token), "delete": l.Delete(t.Context()), "release": l.Release(t.Context(), token)} {
			if !errors.Is(err, state.ErrInUse) || !strings.Contains(err.Error(), "second") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got, err := taken.Load(t.Context()); err != nil || got.Committed != 0 {
			t.Errorf("%+v, %v", got, err)
		}
		if err := taken.Release(t.Context(), nil); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

func encoded(t *testing.T, token *state.Token) []byte {
	t.Helper()
	data, err := state.Encode(token)
	if err != nil {
		t.Fatal(err)
	}
	return data
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
