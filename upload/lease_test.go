package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/session/state/bucketstore"
	"gcsup/upload"
)

// machine is one of several that upload to a world, and save uploads in its bucket.
type machine struct {
	*upload.Uploader
	store *bucketstore.Store
	net   *pausedNet

	mu   sync.Mutex
	held int // events that another machine holds the lease
}

// leaseTTL is the duration of a lease.
const leaseTTL = 2 * time.Minute

// machine starts a machine. The functions change the options of its Uploader.
func (w *world) machine(name string, with ...func(*upload.Options)) *machine {
	w.t.Helper()
	m := &machine{net: &pausedNet{next: w.http.Transport}}
	hc := &http.Client{Transport: m.net}
	client, err := session.NewClient(hc, "http://gcs.test")
	require.NoError(w.t, err)
	m.store, err = bucketstore.Open(w.t.Context(), client, "bkt", "state", &bucketstore.Options{Unsealed: true, Holder: name, TTL: leaseTTL})
	require.NoError(w.t, err)
	opts := &upload.Options{Endpoint: "http://gcs.test", Store: m.store, ChunkSize: large - q, Observer: func(e upload.Event) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if e.Kind == upload.LeaseHeld {
			m.held++
		}
	}}
	for _, f := range with {
		f(opts)
	}
	if m.Uploader, err = upload.New(hc, opts); err != nil {
		w.t.Fatal(err)
	}
	return m
}

// pausedNet is the network of a machine that can be suspended.
type pausedNet struct {
	next http.RoundTripper

	mu     sync.Mutex
	resume chan struct{} // nil while the machine runs
}

func (n *pausedNet) RoundTrip(req *http.Request) (*http.Response, error) {
	n.mu.Lock()
	resume := n.resume
	n.mu.Unlock()
	if resume != nil {
		<-resume
		if err := req.Context().Err(); err != nil {
			return nil, err
		}
	}
	return n.next.RoundTrip(req)
}

func (n *pausedNet) suspend() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.resume = make(chan struct{})
}

func (n *pausedNet) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	close(n.resume)
	n.resume = nil
}

// sessionRequests returns how many requests of sessions the server received.
func (w *world) sessionRequests() (n int) {
	for _, r := range w.srv.Requests() {
		if r.Op == faults.OpPut || r.Op == faults.OpStart || r.Op == faults.OpFinalize || r.Op == faults.OpQuery {
			n++
		}
	}
	return n
}

// A machine that waited for the lease of another one sends nothing if that one made
// the object meanwhile. It sends its own bytes if the object differs, and fails as if it had sent them if its
// source changed or is not confirmed.
func TestHolderFinishes(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(large)
	unconfirmed := errors.New("the producer failed")
	for _, test := range []struct {
		name    string
		want    upload.Spec // of the second machine, without the destination
		restart bool
		during  func(w *world) // is called while the second machine waits, before the first one finishes
		after   func(w *world) // is called when the first one has finished
		confirm func(context.Context) error
		sends   bool
		err     error
	}{
		{name: "the same object"},
		{name: "the same settings", want: upload.Spec{ContentType: "text/plain", Metadata: map[string]string{"k": "v"}}},
		{name: "another content type", want: upload.Spec{ContentType: "text/html"}, sends: true},
		{name: "other metadata", want: upload.Spec{Metadata: map[string]string{"k": "w"}}, sends: true},
		{name: "an ACL", want: upload.Spec{PredefinedACL: "private"}, sends: true}, // the object does not show it
		{name: "restart", restart: true, sends: true},
		{name: "other bytes", after: func(w *world) {
			other := filepath.Join(w.dir, "other")
			if err := os.WriteFile(other, flipped(content, 1), 0o600); err != nil {
				w.t.Error(err)
			}
			if _, err := w.uploader(func(o *upload.Options) { o.Store = nil }).File(w.t.Context(), other, upload.Spec{Bucket: "bkt", Object: "obj", ContentType: "text/plain"}); err != nil {
				w.t.Error(err)
			}
		}, sends: true},
		{name: "no permission to look", during: func(w *world) {
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpGet, Object: "obj"}, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}, Times: 9})
		}, sends: true},
		{name: "a source that grows", after: func(w *world) {
			if err := appendTo(filepath.Join(w.dir, "source"), "x"); err != nil {
				w.t.Error(err)
			}
		}, err: session.ErrSourceChanged},
		{name: "a source that is not confirmed", confirm: func(context.Context) error { return unconfirmed }, err: unconfirmed},
		{name: "only a new object", want: upload.Spec{IfGenerationMatch: new(int64)}, err: session.ErrPrecondition},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				path := w.file(content)
				first, second := w.machine("first"), w.machine("second", func(o *upload.Options) { o.Restart = test.restart })
				w.addFaults(faults.Fault{
					Match: faults.Match{Op: faults.OpFinalize, Object: "obj"},
					Do:    faults.Action{Effect: faults.EffectStatus, Status: 503, RetryAfter: "5"},
				})
				result := make(chan error)
				go func() {
					theirs := spec
					theirs.ContentType, theirs.Metadata = "text/plain", map[string]string{"k": "v"}
					_, err := first.File(w.t.Context(), path, theirs)
					if test.after != nil {
						test.after(w)
					}
					result <- err
				}()
				time.Sleep(time.Second) // it waits before the query
				if test.during != nil {
					test.during(w)
				}
				test.want.Bucket, test.want.Object = spec.Bucket, spec.Object
				res, err := withCall(second.Uploader, upload.CallOptions{Confirm: test.confirm}).File(w.t.Context(), path, test.want)
				if second.held == 0 {
					t.Error("the second machine did not wait")
				}
				if err := <-result; err != nil {
					t.Errorf("the first machine: %v", err)
				}
				if !errors.Is(err, test.err) {
					t.Fatalf("error %v, want %v", err, test.err)
				}
				if sent := res.BytesSent > 0; sent != test.sends {
					t.Errorf("sent %d bytes:\n%s", res.BytesSent, w.trace())
				}
				if test.err != nil {
					return
				}
				now, _ := w.srv.Object("bkt", "obj")
				if res.Object == nil || res.Object.Generation != now.Generation || res.Skipped != upload.SkipNothing || res.Size != large {
					t.Errorf("result %+v, want that of generation %d", res, now.Generation)
				}
			})
		})
	}
}

// An object that existed before is not the one of the other machine, even if a proxy
// replied that it did not exist.
func TestHolderMakesNothing(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]faults.Fault{
		"seen": nil,
		"hidden": {{
			Match: faults.Match{Op: faults.OpGet, Object: "obj"},
			Do:    faults.Action{Effect: faults.EffectStatus, Status: 404, Body: "<html>", ContentType: "text/html"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				path := w.file(data(large))
				first, second := w.machine("first"), w.machine("second")
				before, err := first.File(w.t.Context(), path, spec)
				require.NoError(t, err)
				id, err := first.ID(path, spec)
				require.NoError(t, err)
				lease, err := first.store.Acquire(w.t.Context(), id)
				require.NoError(t, err)
				w.addFaults(faults...)
				time.AfterFunc(time.Second, func() { _ = lease.Release(w.t.Context(), nil) })
				res, err := second.File(w.t.Context(), path, spec)
				if err != nil || second.held == 0 || res.BytesSent != large || res.Object.Generation == before.Object.Generation {
					t.Errorf("sent %d bytes, waited %d times, %v", res.BytesSent, second.held, err)
				}
			})
		})
	}
}

// The source on another machine may be another file with the same bytes.
func TestSharedSource(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(large)
	earlier := time.Now().Add(-time.Hour)
	touched := func(content []byte) func(path string) error {
		return func(path string) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				return err
			}
			return os.Chtimes(path, earlier, earlier)
		}
	}
	for _, test := range []struct {
		name          string
		change        func(path string) error
		first, second string // versions
		want          error
		reread        int64 // at most
	}{
		{name: "the same file", change: func(string) error { return nil }, reread: q},
		{name: "a copy", change: touched(content), reread: 2*mib + q},
		{name: "a copy of the same version", change: touched(content), first: "1", second: "1", reread: 2 * q},
		{name: "another version", change: func(string) error { return nil }, first: "1", second: "2", want: session.ErrSourceChanged},
		{name: "other bytes", change: touched(flipped(content, 1)), want: session.ErrSourceChanged, reread: 2*mib + q},
		{name: "other bytes of the same version", change: touched(flipped(content, 2*mib+1)), first: "1", second: "1", want: session.ErrSourceChanged, reread: 2 * q},
		{name: "another size", change: touched(content[1:]), want: session.ErrSourceChanged},
		{name: "no file", change: os.Remove, want: fs.ErrNotExist},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, &fakegcs.Options{NoMD5: true}, func(w *world) { // an MD5 would also be compared
				path := w.file(content)
				w.addFaults(faults.Fault{
					Match: faults.Match{Op: faults.OpPut, From: 2 * mib, To: 2*mib + 1}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503},
				})
				ctx, interrupt := context.WithCancel(w.t.Context())
				first := w.machine("first", resumable, func(o *upload.Options) {
					o.Observer = func(e upload.Event) {
						if e.Kind == upload.Waiting {
							interrupt()
						}
					}
				})
				res, err := withCall(first.Uploader, upload.CallOptions{SourceVersion: test.first}).File(ctx, path, spec)
				if err == nil || !res.Resumable {
					t.Fatalf("not interrupted: %v", err)
				}
				require.NoError(t, test.change(path))
				if test.want != fs.ErrNotExist {
					w.letPass(path)
				}
				second := withCall(w.machine("second").Uploader, upload.CallOptions{SourceVersion: test.second})
				res, err = second.File(w.t.Context(), path, spec)
				if !errors.Is(err, test.want) {
					t.Fatalf("error %v, want %v", err, test.want)
				}
				if res.BytesReread > test.reread {
					t.Errorf("read %d bytes again", res.BytesReread)
				}
				if test.want != nil {
					w.wantNoObject("obj")
					return
				}
				if res.ResumedFrom != 2*mib {
					t.Errorf("resumed from %d", res.ResumedFrom)
				}
				w.wantObject("obj", content)
			})
		})
	}
}

// TestCauseOfASiblingIsNoLostLease checks that an upload that is canceled during a save in
// a bucket, because another upload is in use, does not take its own lease for lost.
func TestCauseOfASiblingIsNoLostLease(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for _, zipped := range []bool{false, true} { // a compressed file is saved before each request
		inBubble(t, nil, func(w *world) {
			content := random(large)
			path := w.file(content)
			spec := spec
			spec.Gzip = zipped
			a := w.machine("a", func(o *upload.Options) { o.ChunkSize = mib })
			id, err := a.ID(path, spec)
			require.NoError(t, err)
			// The first insert acquires the lease, the others save.
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpInsert, Object: "state/" + id + ".gcsup"}, Skip: 1 + count(zipped), Do: faults.Action{Effect: faults.EffectStall}})
			ctx, cancel := context.WithCancelCause(w.t.Context())
			time.AfterFunc(time.Second, func() { cancel(fmt.Errorf("sibling: %w", state.ErrInUse)) })
			res, err := a.File(ctx, path, spec)
			if !errors.Is(err, context.Canceled) || errors.Is(err, state.ErrInUse) || res.Resumable != zipped {
				t.Errorf("zipped %v: %v, resumable %v\n%s", zipped, err, res.Resumable, w.trace())
			}
			if res, err = w.machine("b").File(w.t.Context(), path, spec); err != nil || res.Resumed != zipped {
				t.Errorf("zipped %v, then: resumed %v, %v", zipped, res.Resumed, err)
			}
		})
	}
}

// TestSuspendedMachineStops suspends a machine while the service fails. File, Resume and Cancel of another one wait
// for its lease, report the wait, and make no request about the upload meanwhile. File and Resume continue at the
// committed offset. When the first machine wakes up, it begins no request, and its error is ErrInUse.
func TestSuspendedMachineStops(t *testing.T) {
	t.Parallel()
	content := data(large)
	for name, end := range map[string]func(up *upload.Uploader, ctx context.Context, path, id string) (*upload.Result, error){
		"File": func(up *upload.Uploader, ctx context.Context, path, _ string) (*upload.Result, error) {
			return up.File(ctx, path, spec)
		},
		"Resume": func(up *upload.Uploader, ctx context.Context, _, id string) (*upload.Result, error) {
			return up.Resume(ctx, id)
		},
		"Cancel": func(up *upload.Uploader, ctx context.Context, _, id string) (*upload.Result, error) {
			return nil, up.Cancel(ctx, id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				path := w.file(content)
				first, second := w.machine("first"), w.machine("second")
				w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: mib}})
				result := make(chan error)
				go func() {
					_, err := first.File(w.t.Context(), path, spec)
					result <- err
				}()
				time.Sleep(time.Second / 2) // it waits before the query
				first.net.suspend()
				suspended, seen := time.Now(), len(w.srv.Requests())
				id, err := first.ID(path, spec)
				require.NoError(t, err)
				var events []upload.Event
				res, err := end(withCall(second.Uploader, upload.CallOptions{Observer: func(e upload.Event) { events = append(events, e) }}), w.t.Context(), path, id)
				if err != nil || res != nil && (!res.Resumed || res.ResumedFrom != mib) {
					t.Errorf("%+v, %v", res, err)
				}
				if took := time.Since(suspended); took > leaseTTL+3*time.Second {
					t.Errorf("took over after %v", took)
				}
				for _, r := range w.srv.Requests()[seen:] {
					if r.Op == faults.OpGet && r.Object != "state/"+id+".gcsup" && name != "File" {
						t.Errorf("looked at gs://%s/%s", r.Bucket, r.Object)
					}
				}
				if n := len(events); n < 2 || events[0].Kind != upload.LeaseHeld || events[0].ID != id || events[0].Cause != "first" || !isHeld(events[0].Err) || events[0].Delay <= 0 || events[n-1].Kind != upload.Done || events[0].Upload == 0 || events[0].Upload != events[n-1].Upload {
					t.Errorf("events %+v", events)
				}
				if name == "Cancel" {
					w.wantNoObject("obj")
				} else {
					w.wantObject("obj", content)
				}
				before := w.sessionRequests()
				first.net.wake()
				w.wantError(<-result, state.ErrInUse)
				if after := w.sessionRequests(); after != before {
					t.Errorf("the first machine made %d requests:\n%s", after-before, w.trace())
				}
				if ids, err := second.store.List(w.t.Context()); err != nil || len(ids) > 0 {
					t.Errorf("saved: %v, %v", ids, err)
				}
			})
		})
	}
}

// isHeld reports whether an error describes the lease of another machine.
func isHeld(err error) bool {
	held, ok := errors.AsType[*state.HeldError](err)
	return ok && held.TTL == leaseTTL && !held.Since.IsZero()
}

// hungReader is a file whose server dies at one read, which returns only at the end of the test.
type hungReader struct {
	io.ReaderAt
	at, reads atomic.Int64 // the number of that read, or 0, and of all reads
	end       chan struct{}
}

func (r *hungReader) ReadAt(p []byte, off int64) (int, error) {
	if r.reads.Add(1) == r.at.Load() {
		<-r.end
		return 0, io.ErrUnexpectedEOF
	}
	return r.ReaderAt.ReadAt(p, off)
}

// inThreeParts makes an Uploader send a large file in parts.
func inThreeParts(o *upload.Options) {
	o.Parallel = &upload.Parts{Connections: 3, MinPart: mib, Join: upload.ByCompose}
}

// Whichever read of a file does not return: when the program gives up the call, another machine gets the lease, although
// the process still runs.
func TestHungReadEndsLease(t *testing.T) {
	t.Parallel()
	content := data(large)
	for name, test := range map[string]struct {
		interrupted int64 // the byte at which a first call is interrupted, of the object or of a part
		with        func(*upload.Options)
	}{
		"new":              {0, func(*upload.Options) {}},
		"resumed":          {2 * mib, func(*upload.Options) {}},
		"in parts":         {0, inThreeParts},
		"resumed in parts": {2 * q, inThreeParts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for at := int64(1); ; at++ {
				finished := false
				inBubble(t, nil, func(w *world) {
					file := &hungReader{ReaderAt: bytes.NewReader(content), end: make(chan struct{})}
					defer func() {
						close(file.end)
						time.Sleep(time.Minute) // the call ends
					}()
					first, second := w.machine("first", test.with), w.machine("second", test.with)
					if test.interrupted > 0 {
						w.addFaults(faults.Fault{
							Match: faults.Match{Op: faults.OpPut, From: test.interrupted, To: test.interrupted + 1}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503},
						})
						ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
						defer cancel()
						if res, err := first.ReaderAt(ctx, file, large, "file", spec); err == nil || !res.Resumable {
							t.Fatalf("not interrupted: %v", err)
						}
					}
					file.at.Store(file.reads.Load() + at)
					ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Minute)
					defer cancel()
					if _, err := first.ReaderAt(ctx, file, large, "file", spec); err == nil {
						finished = true
						composed := slices.ContainsFunc(w.srv.Requests(), func(r fakegcs.Request) bool { return r.Op == faults.OpCompose })
						if composed != strings.Contains(name, "parts") {
							t.Errorf("composed %v", composed)
						}
						return
					}
					if _, err := second.ReaderAt(w.t.Context(), bytes.NewReader(content), large, "file", spec); err != nil {
						t.Errorf("read %d: %v", at, err)
					}
					w.wantObject("obj", content)
				})
				if finished {
					t.Logf("%d reads", at-1)
					return
				}
			}
		})
	}
}
