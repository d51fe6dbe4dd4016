package upload_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/bucket"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

type callKey struct{}

// TestEveryUploadHasOneTerminalEvent checks that the last event of every call is the
// only terminal one, that it has the result of the call, and that all events have the
// context of the call.
func TestEveryUploadHasOneTerminalEvent(t *testing.T) {
	t.Parallel()
	skipShort(t)
	missing := spec
	missing.Bucket = "missing"
	existing := spec
	existing.IfGenerationMatch = new(int64(1))
	cut := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: mib}}
	type call func(ctx context.Context, w *world, up *upload.Uploader) (*upload.Result, error)
	file := func(size int64, spec upload.Spec) call {
		return func(ctx context.Context, w *world, up *upload.Uploader) (*upload.Result, error) {
			return up.File(ctx, w.file(data(size)), spec)
		}
	}
	for _, tt := range []struct {
		name   string
		faults []faults.Fault
		call   call
		want   []upload.EventKind // without Progress and Verifying
	}{
		{"small file", nil, file(10, spec), kinds(upload.Started, upload.Done)},
		{"large file", []faults.Fault{cut}, file(large, spec), kinds(upload.Started, upload.Waiting, upload.Done)},
		{"stream", nil, func(ctx context.Context, w *world, up *upload.Uploader) (*upload.Result, error) {
			return up.Reader(ctx, pieces(data(10)), spec)
		}, kinds(upload.Started, upload.Done)},
		{"no such file", nil, func(ctx context.Context, w *world, up *upload.Uploader) (*upload.Result, error) {
			return up.File(ctx, filepath.Join(w.dir, "missing"), spec)
		}, kinds(upload.Failed)},
		{"no such file of a file system", nil, func(ctx context.Context, w *world, up *upload.Uploader) (*upload.Result, error) {
			return up.FS(ctx, fstest.MapFS{}, "none", spec)
		}, kinds(upload.Failed)},
		{"no such bucket", nil, file(10, missing), kinds(upload.Started, upload.Failed)},
		{"precondition", nil, file(10, existing), kinds(upload.Failed)},
		{"invalid", nil, file(10, upload.Spec{Bucket: "bkt"}), kinds(upload.Failed)},
		{"interrupted", []faults.Fault{{Do: faults.Action{Effect: faults.EffectStall}}}, func(ctx context.Context, w *world, up *upload.Uploader) (*upload.Result, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return up.File(ctx, w.file(data(large)), spec)
		}, kinds(upload.Interrupted)},
		{"no saved upload", nil, func(ctx context.Context, w *world, up *upload.Uploader) (*upload.Result, error) {
			return up.Resume(ctx, "00000000000000000000")
		}, kinds(upload.Failed)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, &fakegcs.Options{Faults: tt.faults}, func(w *world) {
				res, err := tt.call(context.WithValue(w.t.Context(), callKey{}, tt.name), w, w.uploader(largeChunks))
				synctest.Wait()
				w.wantTerminal(tt.name, tt.want, res, err)
			})
		})
	}
	for _, cancel := range []bool{false, true} {
		inBubble(t, nil, func(w *world) {
			up, id, _ := w.unfinished()
			synctest.Wait()
			w.events = nil
			ctx := context.WithValue(w.t.Context(), callKey{}, "saved")
			if !cancel {
				res, err := up.Resume(ctx, id)
				w.wantTerminal("saved", kinds(upload.Resumed, upload.Done), res, err)
			} else if e := w.wantTerminal("saved", kinds(upload.Done), nil, up.Cancel(ctx, id)); e.ID != id || e.Result.Object != nil {
				t.Errorf("event = %+v", e)
			}
		})
	}
}

func quiet(o *upload.Options) { o.Observer = nil }

func kinds(k ...upload.EventKind) []upload.EventKind { return k }

// wantTerminal fails unless the events of the only upload, except for Progress, have
// the wanted kinds, and the last one has the result of the call; a nil res is not
// compared. It returns the last event.
func (w *world) wantTerminal(name string, want []upload.EventKind, res *upload.Result, err error) (last upload.Event) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []upload.EventKind
	for i, e := range w.events {
		if e.Context().Value(callKey{}) != name {
			w.t.Errorf("event %d, %v, does not have the context of the call", i, e.Kind)
		}
		if e.Upload == 0 || e.Upload != w.events[0].Upload || e.Time.IsZero() {
			w.t.Errorf("event %d, %v, has upload %d and time %v", i, e.Kind, e.Upload, e.Time)
		}
		if e.Kind != upload.Progress && e.Kind != upload.Verifying {
			got = append(got, e.Kind)
		}
		last = e
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("observed %v, want %v; the call returned %v", got, want, err)
	}
	if last.Result == nil || !last.Kind.Terminal() || !errors.Is(err, last.Err) {
		w.t.Fatalf("the last event is %+v, and the call returned %v", last, err)
	}
	if res != nil && (last.Result == res || last.Result.Object != res.Object || last.Result.Requests != res.Requests || last.Result.Resumable != res.Resumable) {
		w.t.Errorf("the last event has %+v, and the call returned %+v", last.Result, res)
	}
	return last
}

// TestEveryFileHasOneTerminalEvent checks that each result of a batch has one
// terminal event, even if the file was not uploaded.
func TestEveryFileHasOneTerminalEvent(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		var jobs []upload.Job
		add := func(bucket, name string, change func(*upload.Job)) {
			path := filepath.Join(w.dir, name)
			require.NoError(t, os.WriteFile(path, []byte(name), 0o600))
			job := upload.Job{Path: path, Spec: upload.Spec{Bucket: bucket, Object: name}}
			if change != nil {
				change(&job)
			}
			jobs = append(jobs, job)
		}
		for _, name := range []string{"seen", "unseen"} {
			w.done(w.uploader(quiet).Reader(w.t.Context(), strings.NewReader("x"), upload.Spec{Bucket: "bkt", Object: name}))
		}
		refused := errors.New("the file was not readable")
		add("bkt", "new", nil)
		add("bkt", "seen", func(j *upload.Job) { j.Listed, j.Object = true, &session.Object{Size: 4} })
		add("bkt", "unseen", nil)
		add("missing", "one", nil)
		add("missing", "two", nil)
		add("bkt", "unreadable", func(j *upload.Job) { j.Err = refused })
		want := map[string]string{
			"new": "done", "seen": "done exists", "unseen": "done exists", "one": "failed", "two": "failed not tried", "unreadable": "failed",
		}
		n := 0
		for range w.uploader().Files(w.t.Context(), slices.Values(jobs), &upload.BatchOptions{Skip: upload.SkipExisting, Jobs: 1}) {
			n++
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		got, terminal := map[string]string{}, map[int64]bool{}
		for _, e := range w.events {
			if terminal[e.Upload] {
				t.Errorf("%v follows the terminal event of %s", e.Kind, e.Spec.Object)
			}
			if !e.Kind.Terminal() {
				continue
			}
			terminal[e.Upload] = true
			text := e.Kind.String()
			if e.Result.Skipped != upload.SkipNothing {
				text += " " + e.Result.Skipped.String()
			}
			if errors.Is(e.Err, upload.ErrNotTried) {
				text += " not tried"
			}
			got[e.Spec.Object] = text
		}
		for name, text := range want {
			if got[name] != text {
				t.Errorf("%s: %q, want %q", name, got[name], text)
			}
		}
		if n != len(jobs) || len(terminal) != len(jobs) {
			t.Errorf("%d results and %d terminal events, want %d", n, len(terminal), len(jobs))
		}
	})
}

// TestExchanges checks the calls of the hook for each request: their values, that
// they precede the terminal event, and that a slow hook delays nothing.
func TestExchanges(t *testing.T) {
	t.Parallel()
	faults := []faults.Fault{
		{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: mib}},
		{Match: faults.Match{Op: faults.OpQuery}, Do: faults.Action{Effect: faults.EffectReset}},
	}
	inBubble(t, &fakegcs.Options{Faults: faults, Latency: time.Second}, func(w *world) {
		var seen []upload.Exchange
		up := w.uploader(largeChunks, func(o *upload.Options) {
			o.Exchange = func(x upload.Exchange) {
				time.Sleep(time.Minute)
				seen = append(seen, x)
				w.mu.Lock()
				defer w.mu.Unlock()
				if len(w.events) > 0 && w.events[len(w.events)-1].Kind.Terminal() {
					t.Errorf("%s follows the terminal event", x.Op)
				}
			}
		})
		start := time.Now()
		res, err := up.File(context.WithValue(w.t.Context(), callKey{}, "x"), w.file(data(large)), spec)
		require.NoError(t, err)
		if took := time.Since(start); took != time.Duration(len(seen))*time.Minute+time.Second || res.Elapsed > 20*time.Second {
			t.Errorf("the upload took %v of %v, with %d exchanges", res.Elapsed, took, len(seen))
		}
		type row struct {
			op                      session.Op
			attempt, status         int
			offset, sent, committed int64
			failed                  bool
			next                    string
		}
		var got []row
		for _, x := range seen {
			next, _, _ := strings.Cut(x.Next.String(), ":") // the error of the network differs
			got = append(got, row{x.Op, x.Attempt, x.Status, x.Offset, x.Sent, x.Committed, x.Err != nil, next})
			if x.Duration < time.Second && x.Status != 0 || x.Time.Before(start) || x.Context().Value(callKey{}) != "x" || x.Upload == 0 || x.ID != res.ID || x.Spec.Object != "obj" {
				t.Errorf("exchange %+v", x)
			}
		}
		want := []row{
			{session.OpStart, 1, 200, 0, 0, -1, false, "send"},
			{session.OpPut, 2, 503, 0, seen[1].Sent, -1, false, "wait, query"},
			{session.OpQuery, 3, 0, 0, 0, -1, true, "wait, query"},
			{session.OpQuery, 4, 308, 0, 0, mib, false, "send"},
			{session.OpPut, 1, 308, mib, large - mib - q, large - q, false, "send"},
			{session.OpFinalize, 1, 200, large - q, q, -1, false, "done"},
		}
		if !slices.Equal(got, want) {
			t.Errorf("exchanges\n%+v\nwant\n%+v", got, want)
		}
		if len(seen) != res.Requests || seen[1].Sent < mib || seen[1].Sent > large-q {
			t.Errorf("%d exchanges for %d requests, the first put sent %d bytes", len(seen), res.Requests, seen[1].Sent)
		}
	})
}

// TestExchangesOfAListing checks that the requests of a listing belong to no upload,
// and that a hook needs no observer.
func TestExchangesOfAListing(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		var seen []upload.Exchange
		up := w.uploader(quiet, func(o *upload.Options) { o.Exchange = func(x upload.Exchange) { seen = append(seen, x) } })
		jobs := iter.Seq[upload.Job](func(yield func(upload.Job) bool) { yield(upload.Job{Spec: spec}) })
		for _, err := range up.Lookup(w.t.Context(), upload.Listing{Bucket: "bkt", Prefix: "o"}, jobs) {
			require.NoError(t, err)
		}
		if len(seen) != 1 || seen[0].Op != bucket.OpList || seen[0].Upload != 0 || seen[0].Status != 200 || seen[0].Spec.Object != "o" {
			t.Errorf("exchanges %+v", seen)
		}
	})
}
