package upload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// fleeting is a store whose leases a test can end. Leases that are acquired later last.
type fleeting struct {
	state.Store
	lost context.Context
	lose context.CancelCauseFunc
	save bool // the next save loses the lease
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

func (l *fleetingLease) Save(ctx context.Context, t *state.Token) error {
	if l.f.save {
		l.f.lose(errTaken)
	}
	if err := context.Cause(l.f.lost); err != nil {
		return err
	}
	return l.Lease.Save(ctx, t)
}

func (l *fleetingLease) Delete(ctx context.Context) error {
	if err := context.Cause(l.f.lost); err != nil {
		return err
	}
	return l.Lease.Delete(ctx)
}

func (l *fleetingLease) Release(ctx context.Context, last *state.Token) error {
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
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	res, err := w.uploader(byParts, func(o *upload.Options) {
		o.Observer = func(e upload.Event) {
			if e.Committed >= 5*q {
				stop()
			}
		}
	}).File(ctx, path, spec)
	if !errors.Is(err, context.Canceled) || !res.Resumable {
		w.t.Fatalf("%+v, %v", res, err)
	}
	return res
}

// The lease of an upload in parts is lost while the upload is canceled or restarted. The call fails
// at once with ErrInUse, and the upload stays saved.
func TestParallelLeaseLostWhileAbandoned(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, restart := range []bool{false, true} {
		for _, saving := range []bool{false, true} {
			t.Run(fmt.Sprintf("restart %v, in a save %v", restart, saving), func(t *testing.T) {
				t.Parallel()
				inBubble(t, &fakegcs.Options{NoMD5: true, Rate: mib}, func(w *world) {
					path := w.file(data(partsLarge))
					res := w.interruptParts(path)
					f := newFleeting(w.store)
					f.save = saving
					next := w.http.Transport
					w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
						if req.Method == "DELETE" {
							f.lose(errTaken)
						}
						return next.RoundTrip(req)
					})}
					up := w.uploader(byParts, func(o *upload.Options) { o.Store, o.Restart = f, restart })
					began := time.Now()
					var err error
					if restart {
						_, err = up.File(w.t.Context(), path, spec)
					} else {
						err = up.Cancel(w.t.Context(), res.ID)
					}
					if !errors.Is(err, state.ErrInUse) || time.Since(began) > time.Minute {
						t.Errorf("%v after %v", err, time.Since(began))
					}
					w.wantSaved(1)
				})
			})
		}
	}
}

// The lease is lost after the compose. The upload succeeds, and does not wait for the lease.
func TestParallelLeaseLostAfterCompose(t *testing.T) {
	t.Parallel()
	content := data(partsLarge)
	inBubble(t, nil, func(w *world) {
		f := newFleeting(w.store)
		next := w.http.Transport
		var composed atomic.Bool
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(req)
			if strings.HasSuffix(req.URL.Path, "/compose") {
				composed.Store(true)
				f.save = true // the save after it
			}
			return resp, err
		})}
		began := time.Now()
		_, err := w.uploader(byParts, func(o *upload.Options) { o.Store = f }).File(w.t.Context(), w.file(content), spec)
		if err != nil || !composed.Load() || time.Since(began) > time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		w.wantObject("obj", content)
	})
}

// The service always refuses the data of one session. At most two calls fail, and the next one
// starts another session for that part. An earlier version resumed the session in every call.
func TestParallelRejectedData(t *testing.T) {
	t.Parallel()
	content := data(partsLarge)
	inBubble(t, nil, func(w *world) {
		next := w.http.Transport
		var bad atomic.Pointer[string]
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			if id := req.URL.Query().Get("upload_id"); req.Method == "PUT" && req.ContentLength > 0 {
				bad.CompareAndSwap(nil, &id)
				if *bad.Load() == id {
					_ = req.Body.Close()
					return &http.Response{
						StatusCode: 400, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
						Body: io.NopCloser(strings.NewReader(`{"error":{"code":400,"message":"no","errors":[{"reason":"invalid"}]}}`)),
					}, nil
				}
			}
			return next.RoundTrip(req)
		})}
		path := w.file(content)
		for call := range 3 {
			res, err := w.uploader(byParts).File(w.t.Context(), path, spec)
			if err == nil {
				break
			}
			if !errors.Is(err, session.ErrProtocol) || !res.Resumable || call == 2 {
				t.Errorf("call %d: %+v, %v", call, res, err)
			}
		}
		w.wantOnlyObject(content)
	})
}

// The sessions of one part are lost repeatedly. The upload fails, and the next call
// sends only that part. An earlier version had deleted all parts.
func TestParallelSessionsLost(t *testing.T) {
	t.Parallel()
	content := data(partsLarge)
	inBubble(t, nil, func(w *world) {
		next := w.http.Transport
		var mu sync.Mutex
		bad := map[string]bool{}
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			lost := req.Method == "PUT" && bad[req.URL.Query().Get("upload_id")]
			mu.Unlock()
			if lost {
				if req.Body != nil {
					_ = req.Body.Close()
				}
				return &http.Response{
					StatusCode: 410, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
					Body: io.NopCloser(strings.NewReader(`{"error":{"code":410,"message":"gone","errors":[{"reason":"gone"}]}}`)),
				}, nil
			}
			resp, err := next.RoundTrip(req)
			if err == nil && req.Method == "POST" && strings.HasSuffix(req.URL.Query().Get("name"), "/0001") {
				at, err := resp.Location()
				if err != nil {
					return nil, err
				}
				mu.Lock()
				bad[at.Query().Get("upload_id")] = true
				mu.Unlock()
			}
			return resp, err
		})}
		path := w.file(content)
		res, err := w.uploader(byParts, func(o *upload.Options) { o.Parallel = composed(2, 2*q) }).File(w.t.Context(), path, spec)
		if !errors.Is(err, session.ErrSessionLost) || !res.Resumable {
			w.t.Fatalf("%+v, %v\n%s", res, err, w.trace())
		}
		w.http = &http.Client{Transport: next}
		res, err = w.uploader(byParts).File(w.t.Context(), path, spec)
		if err != nil || res.ResumedFrom == 0 || res.ResumedFrom+res.BytesSent != partsLarge {
			t.Errorf("%+v, %v", res, err)
		}
		w.wantOnlyObject(content)
	})
}
