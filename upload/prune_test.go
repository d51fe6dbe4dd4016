package upload_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// finished makes an upload that the service finished, although the client did not get
// the reply.
func (w *world) finished(path string) (id string) {
	w.t.Helper()
	w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectStallReply}})
	return w.timeOut(path, spec, largeChunks).ID
}

// answers is a plan in which the next queries get a status.
func answers(effect faults.Effect, status, times int) faults.Fault {
	return faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Times: times, Do: faults.Action{Effect: effect, Status: status}}
}

// byProxy is a plan in which all queries get a status that is not from the service.
func byProxy(status int) faults.Fault {
	fault := answers(faults.EffectStatus, status, 100)
	fault.Do.Body = "<html>"
	return fault
}

// TestPrune checks which uploads Prune deletes, and which states Query returns for
// them. Each upload sent 2 MiB.
func TestPrune(t *testing.T) {
	t.Parallel()
	skipShort(t)
	missingSource := upload.PruneOptions{MissingSource: true}
	for _, tt := range []struct {
		name    string
		finish  bool
		noFile  bool
		faults  []faults.Fault
		prepare func(w *world, id string)
		opts    upload.PruneOptions

		state   upload.SessionState
		deleted bool
		missing bool
		err     error
	}{
		{name: "open", state: upload.SessionOpen},
		{name: "gone once", faults: []faults.Fault{answers(faults.EffectStatus, 404, 1)}, state: upload.SessionOpen},
		{name: "gone", faults: []faults.Fault{answers(faults.EffectStatus, 404, 2)}, state: upload.SessionGone, deleted: true},
		{name: "gone, by a proxy", faults: []faults.Fault{byProxy(404)}, err: session.ErrRetriesExhausted},
		{name: "410", faults: []faults.Fault{answers(faults.EffectStatus, 410, 2)}, state: upload.SessionGone, deleted: true},
		{name: "canceled", prepare: (*world).cancelSession, state: upload.SessionCanceled, deleted: true},
		{name: "canceled, by a proxy", faults: []faults.Fault{byProxy(499)}, err: session.ErrRetriesExhausted},
		{name: "denied", faults: []faults.Fault{answers(faults.EffectStatus, 403, 100)}, err: session.ErrPermission},
		{name: "down", faults: []faults.Fault{answers(faults.EffectStatus, 503, 100)}, err: session.ErrRetriesExhausted},
		{name: "not reached", faults: []faults.Fault{answers(faults.EffectReset, 0, 100)}, err: session.ErrRetriesExhausted},
		{name: "expired", prepare: func(*world, string) { time.Sleep(8 * 24 * time.Hour) }, state: upload.SessionGone, deleted: true},
		{name: "too old, but there", prepare: func(w *world, id string) {
			w.plant(id, id, func(t *state.Upload) { t.Created = t.Created.Add(-30 * 24 * time.Hour) })
		}, state: upload.SessionOpen},
		{name: "finished", finish: true, state: upload.SessionFinished, deleted: true},
		{name: "finished, and replaced", finish: true, prepare: func(w *world, _ string) {
			w.done(w.uploader().Reader(w.t.Context(), strings.NewReader("another"), spec))
		}, state: upload.SessionFinished},
		{name: "finished, and the object cannot be looked at", finish: true, faults: []faults.Fault{
			{Match: faults.Match{Op: faults.OpGet}, Times: 100, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
		}, state: upload.SessionFinished, err: session.ErrRetriesExhausted},
		{name: "no source, and not asked for", noFile: true, state: upload.SessionOpen},
		{name: "no source", noFile: true, opts: missingSource, state: upload.SessionOpen, deleted: true, missing: true},
		{name: "a source", opts: missingSource, state: upload.SessionOpen},
		{name: "no source, and not reached", noFile: true, opts: missingSource, faults: []faults.Fault{answers(faults.EffectReset, 0, 100)}, err: session.ErrRetriesExhausted},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dry run %v", tt.name, dry), func(t *testing.T) {
				inBubble(t, nil, func(w *world) {
					ctx := w.t.Context()
					path := w.file(data(large))
					var id string
					if tt.finish {
						id = w.finished(path)
					} else {
						id = w.interrupt(path, 2*mib, largeChunks).ID
					}
					if tt.noFile {
						require.NoError(t, os.Remove(path))
					}
					if tt.prepare != nil {
						tt.prepare(w, id)
					}
					w.srv.ClearFaults()
					w.addFaults(tt.faults...)
					opts := tt.opts
					opts.DryRun = dry
					n := 0
					for p, err := range w.uploader().Prune(ctx, &opts) {
						n++
						if p.ID != id || p.State != tt.state || p.Deleted != tt.deleted || p.SourceMissing != tt.missing || !errors.Is(err, tt.err) {
							t.Errorf("Prune yields %+v, %v\n%s", p, err, w.trace())
						}
						if p.State == upload.SessionOpen && p.Stored != 2*mib {
							t.Errorf("%d bytes are stored, want 2 MiB", p.Stored)
						}
					}
					if n != 1 {
						t.Errorf("%d uploads, want 1", n)
					}
					left := 1
					if tt.deleted && !dry {
						left = 0
					}
					w.wantSaved(left)
					w.srv.ClearFaults()
					if dry && len(tt.faults) == 0 {
						if got, err := w.uploader().Query(ctx, id); err != nil || got.State != tt.state {
							t.Errorf("Query = %+v, %v, want %v", got, err, tt.state)
						}
						return
					}
					if left == 0 {
						w.fails(state.ErrNotFound)(w.uploader().Query(ctx, id))
					}
					if tt.missing && !dry {
						if last := w.srv.Requests()[len(w.srv.Requests())-1]; last.Op != faults.OpCancel || last.Status != 499 {
							t.Errorf("the session was not canceled:\n%s", w.trace())
						}
					}
				})
			})
		}
	}
}

// cancelSession cancels the session of a saved upload, as another client would.
func (w *world) cancelSession(id string) {
	w.t.Helper()
	doc, err := w.store.Load(w.t.Context(), id)
	require.NoError(w.t, err)
	client, err := session.NewClient(w.http, "http://gcs.test")
	require.NoError(w.t, err)
	if r := client.Cancel(w.t.Context(), doc.URI); !r.Canceled() {
		w.t.Fatalf("cancel: %+v", r)
	}
}

// TestPruneKeeps checks that an upload that Prune cannot decide about is kept and
// reported, and that it does not end the iteration.
func TestPruneKeeps(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		ctx := w.t.Context()
		id := w.interrupt(w.file(data(large)), 2*mib, largeChunks).ID
		w.plant(id, "1-damaged", nil)
		w.rewrite("1-damaged", func(s string) string { return s[1:] }, 0o600)
		w.plant(id, "2-elsewhere", func(t *state.Upload) { t.Endpoint = "http://other.test" })
		w.plant(id, "3-used", nil)
		w.plant(id, "z-gone", nil)
		unlock, err := w.store.Lock(ctx, "3-used")
		require.NoError(t, err)
		defer unlock()
		want := map[string]error{"1-damaged": state.ErrCorrupt, "2-elsewhere": session.ErrURIMismatch, "3-used": state.ErrInUse}
		w.fails(state.ErrInUse)(w.uploader().Query(ctx, "3-used"))
		w.cancelSession(id)
		before := len(w.srv.Requests())
		deleted := 0
		for p, err := range w.uploader().Prune(ctx, nil) {
			if !errors.Is(err, want[p.ID]) || p.Deleted != (want[p.ID] == nil) {
				t.Errorf("Prune yields %+v, %v, want %v", p, err, want[p.ID])
			}
			if p.Deleted {
				deleted++
			}
		}
		if asked := len(w.srv.Requests()) - before; deleted != 2 || asked != 2 {
			t.Errorf("%d deleted, %d requests, want 2 and 2", deleted, asked)
		}
		w.wantSaved(3)
	})
}

// TestPruneStops checks that a service that is down for the first upload is not
// tried again for each of the others.
func TestPruneStops(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		id := w.interrupt(w.file(data(large)), 2*mib, largeChunks).ID
		for i := range 100 {
			w.plant(id, fmt.Sprint("z", i), nil)
		}
		w.addFaults(answers(faults.EffectReset, 0, 100))
		n, notTried := 0, 0
		for p, err := range w.uploader().Prune(w.t.Context(), nil) {
			n++
			if errors.Is(err, upload.ErrNotTried) {
				notTried++
			}
			if !errors.Is(err, session.ErrRetriesExhausted) || p.Deleted {
				t.Errorf("Prune yields %+v, %v", p, err)
			}
		}
		if n != 101 || notTried != 100 {
			t.Errorf("%d uploads, %d not tried, want 101 and 100", n, notTried)
		}
		w.wantSaved(101)
	})
}

// TestPruneNamedSource checks that a source that is not a file does not count as
// missing.
func TestPruneNamedSource(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		first := w.interruptReaderAt(data(20*mib), "report@7", 10*mib)
		for pruned, err := range w.uploader().Prune(w.t.Context(), &upload.PruneOptions{MissingSource: true}) {
			if err != nil || pruned.ID != first.ID || pruned.Deleted || pruned.SourceMissing || pruned.Source() != "report@7" {
				t.Errorf("%+v, %v, want it kept", pruned, err)
			}
		}
		w.wantSaved(1)
	})
}
