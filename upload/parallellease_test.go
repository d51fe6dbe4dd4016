package upload_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session/state"
	"gcsup/upload"
)

// fleeting is a store whose leases a test can end. Leases that are acquired later last.
type fleeting struct {
	state.Store
	lost context.Context
	lose context.CancelCauseFunc
	save atomic.Bool // the next save loses the lease

	writes sync.Mutex // held while the store is written
}

// take lets another process take the lease and change the store. No write of this process is under way then, as with
// the lock of a real store.
func (f *fleeting) take(change func()) {
	f.writes.Lock()
	defer f.writes.Unlock()
	change()
	f.lose(errTaken)
}

func (f *fleeting) Acquire(ctx context.Context, id string) (state.Lease, error) {
	lease, err := state.Acquire(ctx, f.Store, id)
	if f.lost.Err() != nil {
		return lease, err
	}
	return &fleetingLease{lease, f}, err
}

type fleetingLease struct {
	state.Lease
	f *fleeting
}

var errTaken = fmt.Errorf("%w: taken", state.ErrInUse)

func (l *fleetingLease) Context() context.Context { return l.f.lost }

func (l *fleetingLease) Begin(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := context.Cause(l.f.lost); err != nil {
		return nil, nil, err
	}
	return l.Lease.Begin(ctx)
}

func (l *fleetingLease) Save(ctx context.Context, t *state.Upload) error {
	l.f.writes.Lock()
	defer l.f.writes.Unlock()
	if l.f.save.Load() {
		l.f.lose(errTaken)
	}
	if err := context.Cause(l.f.lost); err != nil {
		return err
	}
	return l.Lease.Save(ctx, t)
}

func (l *fleetingLease) Delete(ctx context.Context) error {
	l.f.writes.Lock()
	defer l.f.writes.Unlock()
	if err := context.Cause(l.f.lost); err != nil {
		return err
	}
	return l.Lease.Delete(ctx)
}

func (l *fleetingLease) Release(ctx context.Context, last *state.Upload) error {
	l.f.writes.Lock()
	defer l.f.writes.Unlock()
	if err := context.Cause(l.f.lost); err != nil {
		_ = l.Lease.Release(ctx, nil)
		return err
	}
	return l.Lease.Release(ctx, last)
}

func newFleeting(s state.Store) *fleeting {
	f := &fleeting{Store: s}
	f.lost, f.lose = context.WithCancelCause(context.Background())
	return f
}

// roundTrip is an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// interruptParts starts an upload in parts and interrupts it when about half is committed.
func (w *world) interruptParts(path string) *upload.Result {
	w.t.Helper()
	return w.interruptAt(path, spec, func(e upload.Event) bool { return e.Committed >= 5*q }, byParts)
}

// TestPartsLeaseLost loses the lease of an upload in parts at a request or in a save. The call ends at once with
// ErrInUse and aborts nothing, because another process continues the upload. After the request that makes the object,
// it succeeds.
func TestPartsLeaseLost(t *testing.T) {
	t.Parallel()
	skipShort(t)
	of := func(method string) func(*http.Request) bool { // a request of a multipart upload
		return func(r *http.Request) bool { return r.Method == method && r.URL.Query().Has("uploadId") }
	}
	removal := func(r *http.Request) bool { return r.Method == http.MethodDelete }
	composed := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/compose") }
	for name, test := range map[string]struct {
		with            func(*upload.Options)
		at              func(*http.Request) bool
		save            bool // the lease is lost in the first save
		cancel, restart bool // of an interrupted upload
		made            bool // the lease is lost in the save after the request
		may             bool // succeed
	}{
		"a part":               {with: byMultipart, at: of("PUT")},
		"the list":             {with: byMultipart, at: of("GET")},
		"the completion":       {with: byMultipart, at: of("POST"), may: true},
		"after the compose":    {with: byParts, at: composed, made: true},
		"a cancel":             {with: byParts, at: removal, cancel: true},
		"a cancel, in a save":  {with: byParts, at: removal, cancel: true, save: true},
		"a restart":            {with: byParts, at: removal, restart: true},
		"a restart, in a save": {with: byParts, at: removal, restart: true, save: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, &fakegcs.Options{NoMD5: true, Rate: mib}, func(w *world) {
				content := data(partsLarge)
				if !test.cancel && !test.restart && !test.made {
					content = data(multipartLarge)
				}
				path, id := w.file(content), ""
				if test.cancel || test.restart {
					id = w.interruptParts(path).ID
				}
				f, plain := newFleeting(w.store), w.http
				f.save.Store(test.save)
				w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
					if test.at(req) && !test.made {
						f.lose(errTaken)
					}
					resp, err := plain.Transport.RoundTrip(req)
					if test.made && test.at(req) {
						f.save.Store(true)
					}
					return resp, err
				})}
				up := w.uploader(test.with, func(o *upload.Options) { o.Store, o.Restart = f, test.restart })
				began := time.Now()
				var err error
				if test.cancel {
					err = up.Cancel(w.t.Context(), id)
				} else {
					_, err = up.File(w.t.Context(), path, spec)
				}
				w.http = plain
				if lost := errors.Is(err, state.ErrInUse); lost == test.made && !test.may || err != nil && !lost || time.Since(began) > time.Minute {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				for _, r := range w.srv.Requests() {
					if r.Op == faults.OpPartsAbort {
						t.Error("the upload was aborted")
					}
				}
				w.wantSaved(1)
				w.done(w.uploader(test.with).File(w.t.Context(), path, spec))
				w.wantOnlyObject(content)
			})
		})
	}
}
