package fakegcs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

func TestReset(t *testing.T) {
	for _, mode := range []string{"memory", "directory"} {
		t.Run(mode, func(t *testing.T) {
			opts := &fakegcs.Options{
				Buckets: []fakegcs.Bucket{{Name: "bkt"}}, BucketRate: 1000, RequireToken: true,
				Faults: []faults.Fault{{Match: faults.Match{Op: faults.OpList}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}},
			}
			if mode == "directory" {
				opts.Dir = t.TempDir()
			}
			srv := fakegcs.NewServer(t, opts)
			srv.AllowToken("secret")
			w := &world{T: t, gcs: srv.Server, url: srv.URL, client: plainClient}
			const auth = "Authorization: Bearer secret"
			start := func() string {
				return w.do("POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=x", nil, auth).Header.Get("Location")
			}
			uri := start()
			w.chunk(308, uri, 0, q, "*")
			w.do("POST", "/bkt/parts?uploads", nil, auth)
			w.createBucket(fakegcs.Bucket{Name: "other"})
			w.want(503, "", "GET", "/storage/v1/b/bkt/o", nil, auth)
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: faults.EffectStall}})
			var stalled sync.WaitGroup
			stalled.Go(func() {
				if a, err := w.try("POST", "/upload/storage/v1/b/bkt/o?uploadType=media&name=y", nil, auth); err == nil { // net/http repeats no POST
					t.Errorf("the stalled request got %d", a.StatusCode)
				}
			})
			for srv.FaultReport()[1].Fired == 0 {
				runtime.Gosched()
			}
			w.want(204, "", "POST", "/_fakegcs/reset", nil)
			stalled.Wait()

			if n := srv.Stats().Requests; n != 0 || len(srv.Requests()) != 0 {
				t.Errorf("%d requests in the log after a reset", n)
			}
			if report := srv.FaultReport(); len(report) != 1 || report[0].Fired != 0 {
				t.Errorf("fault plan after a reset: %+v", report)
			}
			if _, err := srv.ListObjects("other", ""); err == nil {
				t.Error("a bucket that was created later exists after a reset")
			}
			w.want(404, "", "PUT", uri, nil, fmt.Sprint("Content-Range: bytes */", q))
			w.chunk(200, start(), 0, q, fmt.Sprint(q))
			if mode == "directory" {
				if err := srv.Reset(); err != nil {
					t.Error(err)
				}
				for _, dir := range []string{"blobs", "sessions", "parts"} {
					if list, _ := os.ReadDir(filepath.Join(opts.Dir, dir)); len(list) != 0 {
						t.Errorf("%s has %d entries after a reset", dir, len(list))
					}
				}
			}
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
			if err := srv.Reset(); err == nil {
				t.Error("Reset of a closed server has no error")
			}
		})
	}
}

// Requests that arrive during a reset see the server before or after it.
func TestResetConcurrently(t *testing.T) {
	w := newWorld(t, &fakegcs.Options{CreateBuckets: true})
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for n := range 50 {
				_, _ = w.try("POST", fmt.Sprintf("/upload/storage/v1/b/bkt/o?uploadType=media&name=%d-%d", i, n), data(1000))
			}
		})
	}
	for range 20 {
		if err := w.gcs.Reset(); err != nil {
			t.Error(err)
		}
	}
	clients.Wait()
	if err := w.gcs.Reset(); err != nil {
		t.Error(err)
	}
	if _, err := w.gcs.ListObjects("bkt", ""); err == nil {
		t.Error("there is a bucket after the last reset")
	}
}
