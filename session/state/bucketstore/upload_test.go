package bucketstore_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session/state"
	"gcsup/upload"
)

// source is a file of 10 MiB, which is too large for one request without a session.
func source(t *testing.T, dir string) (path string, content []byte) {
	t.Helper()
	content = make([]byte, 10<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	path = filepath.Join(dir, "source")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path, content
}

// uploader returns an Uploader with a store.
func (w *world) uploader(store state.Store, with ...func(*upload.Options)) *upload.Uploader {
	w.t.Helper()
	opts := &upload.Options{Endpoint: "http://gcs.test", Store: store, RetryFor: time.Hour, StallRate: 1}
	for _, f := range with {
		f(opts)
	}
	up, err := upload.New(&http.Client{Transport: w.transport}, opts)
	require.NoError(w.t, err)
	return up
}

var destination = upload.Spec{Bucket: "data", Object: "o"}

// finished checks the object, and that no upload is saved. It also checks that each
// request to the data bucket began while the lease was valid: within 7/8 of the TTL
// after a write of the lease's object.
func (w *world) finished(t *testing.T, want []byte) (stateRequests int) {
	t.Helper()
	if got, err := w.server.ReadObject("data", "o"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the object is not the source: %v", err)
	}
	var renewed time.Time
	for _, r := range w.server.Requests() {
		switch {
		case r.Bucket == "state":
			stateRequests++
			if (r.Op == faults.OpInsert) && r.Status == 200 {
				renewed = r.Time
			}
			if r.Op == faults.OpDelete {
				if _, ok := w.server.Object("state", r.Object); ok {
					t.Errorf("%s was not deleted", r.Object)
				}
			}
		case r.Bucket == "data" && r.Time.Sub(renewed) > ttl*7/8:
			t.Errorf("a request began at %v; the lease was renewed at %v", r.Time, renewed)
		}
	}
	return stateRequests
}

// While an upload runs, the store makes at most one request per minute, however many requests the
// upload makes.
func TestOverhead(t *testing.T) {
	if testing.Short() {
		t.Skip("sends many requests")
	}
	for _, chunkSize := range []int64{0, 256 << 10} {
		t.Run(fmt.Sprint("chunks of ", chunkSize), func(t *testing.T) {
			dir := t.TempDir()
			// At this rate the upload takes 30 minutes.
			inBubble(t, &fakegcs.Options{CreateBuckets: true, Rate: 10 << 20 / 1800}, func(t *testing.T, w *world) {
				path, content := source(t, dir)
				up := w.uploader(w.start("first").Store, func(o *upload.Options) { o.ChunkSize = chunkSize })
				began := time.Now()
				res, err := up.File(t.Context(), path, destination)
				require.NoError(t, err)
				took := time.Since(began)
				n := w.finished(t, content)
				// Six requests read the configuration of the bucket, check for a saved upload,
				// acquire the lease, save the session, and delete the object.
				t.Logf("%d requests, %d of them to the state, in %v", res.Requests, n, took)
				if minutes := int(took / time.Minute); minutes < 29 || n > minutes+6 {
					t.Errorf("%d requests to the state in %v", n, took)
				}
			})
		})
	}
}

// One reply to the store is lost, at every position. An upload that is interrupted and continued by
// another process sends each byte once, except for those in flight.
func TestEachReplyLost(t *testing.T) {
	if testing.Short() {
		t.Skip("sends many requests")
	}
	dir := t.TempDir()
	var path string
	var content []byte
	for nth := 0; ; nth++ {
		fired := false
		inBubble(t, &fakegcs.Options{CreateBuckets: true, NoMD5: true}, func(t *testing.T, w *world) {
			if nth == 0 {
				path, content = source(t, dir)
			}
			first, second := w.start("first"), w.start("second")
			addFaults(t, w,
				faults.Fault{Match: faults.Match{Bucket: "state"}, Skip: nth, Do: faults.Action{Effect: faults.EffectLoseReply}},
				faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 2, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
			)
			ctx, cancel := context.WithCancel(t.Context())
			chunks := func(o *upload.Options) { o.ChunkSize = 2 << 20 }
			up := w.uploader(first.Store, chunks, func(o *upload.Options) {
				o.Observer = func(e upload.Event) {
					if e.Kind == upload.Waiting && e.Committed > 0 {
						cancel()
					}
				}
			})
			if _, err := up.File(ctx, path, destination); err == nil {
				t.Fatal("it was not interrupted")
			}
			res, err := w.uploader(second.Store, chunks).File(t.Context(), path, destination)
			if err != nil {
				t.Fatalf("request %d: %v", nth, err)
			}
			if !res.Resumed || res.ResumedFrom != 4<<20 {
				t.Errorf("request %d: resumed %v from %d", nth, res.Resumed, res.ResumedFrom)
			}
			w.finished(t, content)
			fired = w.server.FaultReport()[0].Fired > 0
		})
		if t.Failed() {
			return
		}
		if !fired {
			t.Logf("%d requests", nth)
			if nth < 8 {
				t.Error("fewer requests than expected")
			}
			return
		}
	}
}
