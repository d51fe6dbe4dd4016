package upload_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state/bucketstore"
	"gcsup/upload"
)

// stateWorld is a machine whose state bucket is not that of the objects.
type stateWorld struct {
	*world
	store *bucketstore.Store
	up    *upload.Uploader
	path  string
	log   strings.Builder

	mu     sync.Mutex
	events []upload.Event
}

// inStateWorld runs f in a bubble, with a saved upload.
func inStateWorld(t *testing.T, ttl time.Duration, f func(w *stateWorld, saved string)) {
	t.Helper()
	inBubble(t, &fakegcs.Options{CreateBuckets: true}, func(world *world) {
		client, err := session.NewClient(world.http, "http://gcs.test")
		require.NoError(t, err)
		store, err := bucketstore.Open(world.t.Context(), client, "state", "up", &bucketstore.Options{Unsealed: true, TTL: ttl})
		require.NoError(t, err)
		w := &stateWorld{world: world, store: store, path: world.file(data(large))}
		w.up = w.uploader(func(o *upload.Options) {
			o.Store, o.ChunkSize = store, large/4
			o.RetryFor, o.Policy = 10*time.Second, backoff.Policy{Maximum: time.Second}
			o.Logger = slog.New(slog.NewTextHandler(&w.log, nil))
			o.Observer = func(e upload.Event) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.events = append(w.events, e)
			}
		})
		w.addFaults(faults.Fault{ // otherwise the upload could end before its Observer runs
			Match: faults.Match{Op: faults.OpPut, From: large / 4, To: large/4 + 1}, Do: faults.Action{Effect: faults.EffectStall},
		})
		ctx, interrupt := context.WithCancel(w.t.Context())
		res, err := withCall(w.up, upload.CallOptions{Observer: func(e upload.Event) {
			if e.Committed > 0 {
				interrupt()
			}
		}}).File(ctx, w.path, spec)
		if err == nil || !res.Resumable {
			t.Fatalf("not interrupted: %v", err)
		}
		f(w, res.ID)
	})
}

// bucket makes the state bucket answer in another way, until the returned function is called.
func (w *stateWorld) bucket(do faults.Action) (undo func()) {
	w.addFaults(faults.Fault{Match: faults.Match{Bucket: "state"}, Times: -1, Do: do})
	return w.srv.ClearFaults
}

// waits returns the events about the store.
func (w *stateWorld) waits() (of []upload.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Kind == upload.Waiting && e.Store {
			of = append(of, e)
		}
	}
	return of
}

// While the state bucket is down, every method obeys RetryFor and Policy, reports each wait to the
// Observer and the Logger, and then fails with an error that names the bucket.
func TestStateBucketDown(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(w *stateWorld, ctx context.Context, saved string) error{
		"File": func(w *stateWorld, ctx context.Context, _ string) error {
			_, err := w.up.File(ctx, w.path, spec)
			return err
		},
		"Resume": func(w *stateWorld, ctx context.Context, saved string) error {
			_, err := w.up.Resume(ctx, saved)
			return err
		},
		"Cancel": func(w *stateWorld, ctx context.Context, saved string) error { return w.up.Cancel(ctx, saved) },
		"Query": func(w *stateWorld, ctx context.Context, saved string) error {
			_, err := w.up.Query(ctx, saved)
			return err
		},
		"Saved": func(w *stateWorld, ctx context.Context, _ string) (err error) {
			for _, err = range w.up.Saved(ctx) {
			}
			return err
		},
		"Prune": func(w *stateWorld, ctx context.Context, _ string) (err error) {
			for _, err = range w.up.Prune(ctx, nil) {
			}
			return err
		},
		"TakeOver": func(w *stateWorld, ctx context.Context, saved string) error {
			_, err := w.up.TakeOver(ctx, saved, w.path)
			return err
		},
		"Files": func(w *stateWorld, ctx context.Context, _ string) (err error) {
			for _, err = range w.up.Files(ctx, slices.Values([]upload.Job{{Path: w.path, Spec: spec, Size: large}}), nil) {
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inStateWorld(t, leaseTTL, func(w *stateWorld, saved string) {
				before := len(w.srv.Requests())
				undo := w.bucket(faults.Action{Effect: faults.EffectStatus, Status: 503})
				began := time.Now()
				err := call(w, w.t.Context(), saved)
				calls := time.Duration(1)
				switch name {
				case "Files", "Resume", "Cancel": // they list or load first, which may fail
					calls = 2
				}
				if took := time.Since(began); took > calls*10*time.Second {
					t.Errorf("took %v", took)
				}
				if !errors.Is(err, session.ErrRetriesExhausted) || errors.Is(err, session.ErrNotFound) || !strings.Contains(err.Error(), "state in gs://state/up: ") {
					t.Errorf("error %v", err)
				}
				for _, r := range w.srv.Requests()[before:] {
					if r.Bucket != "state" {
						t.Errorf("%s of gs://%s/%s", r.Op, r.Bucket, r.Object)
					}
				}
				waits := w.waits()
				if len(waits) < 8 || waits[0].Cause != "state in gs://state/up: 503" || waits[0].Delay > time.Second || waits[1].Retry != 2 {
					t.Errorf("events %+v", waits)
				}
				if n := strings.Count(w.log.String(), `msg="a request of the store failed" err="state in gs://state/up: `); n != len(waits) {
					t.Errorf("%d lines in the log for %d waits:\n%s", n, len(waits), w.log.String())
				}
				undo()
			})
		})
	}
}

// Without RetryFor, the store is retried as long as an upload of that size.
func TestStateBucketDownBySize(t *testing.T) {
	t.Parallel()
	inStateWorld(t, leaseTTL, func(w *stateWorld, _ string) {
		defer w.bucket(faults.Action{Effect: faults.EffectStatus, Status: 503})()
		up := w.uploader(func(o *upload.Options) { o.Store, o.ChunkSize = w.store, large/4 })
		began := time.Now()
		_, err := up.File(w.t.Context(), w.path, spec)
		want := backoff.Policy{}.LongestTotal(backoff.Retries(large))
		if took := time.Since(began); !errors.Is(err, session.ErrRetriesExhausted) || took > want || took < want/3 {
			t.Errorf("%v after %v, want about %v", err, took, want)
		}
	})
}

// The lease of an upload expires while it sends, because the state bucket is down. The wait is
// reported, and the upload continues when the bucket is back.
func TestStateBucketDownWhileSending(t *testing.T) {
	t.Parallel()
	inStateWorld(t, 10*time.Second, func(w *stateWorld, saved string) {
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503, RetryAfter: "5"}})
		go func() {
			time.Sleep(time.Second)
			undo := w.bucket(faults.Action{Effect: faults.EffectStatus, Status: 503})
			time.Sleep(15 * time.Second)
			undo()
		}()
		res, err := withCall(w.up, upload.CallOptions{RetryFor: time.Minute}).Resume(w.t.Context(), saved)
		if err != nil || res.Resumed == false {
			t.Fatal(err)
		}
		waits := w.waits()
		if len(waits) == 0 {
			t.Errorf("no event of the store")
		}
		for _, e := range waits {
			if e.Upload == 0 || e.ID != saved || e.Cause != "state in gs://state/up: 503" {
				t.Errorf("event %+v", e)
			}
		}
		w.wantObject(spec.Object, data(large))
	})
}
