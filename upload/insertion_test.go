package upload_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// TestManyUploadsToPeerThatClosesIdleConnections checks that a request that needs a
// new connection does not use an idle one of another upload. One file in ten
// waited for a second.
func TestManyUploadsToPeerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	skipShort(t)
	const workers, files = 32, 20
	for _, after := range []time.Duration{5 * time.Millisecond, 30 * time.Millisecond} {
		inBubble(t, &fakegcs.Options{Latency: 3 * time.Millisecond}, func(w *world) {
			w.addFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectCloseAfter, For: after}})
			path := w.file(data(1000))
			up := w.uploader(withoutStore)
			var retries atomic.Int64
			var wg sync.WaitGroup
			for i := range workers {
				wg.Go(func() {
					for j := range files {
						time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
						res, err := up.File(w.t.Context(), path, upload.Spec{Bucket: "bkt", Object: fmt.Sprint(i, "-", j)})
						if err != nil {
							t.Error(err)
						}
						retries.Add(int64(res.Retries))
					}
				})
			}
			wg.Wait()
			if n := retries.Load(); n > workers*files/20 {
				t.Errorf("%v: %d of %d files waited", after, n, workers*files)
			}
		})
	}
}

// TestPeerThatClosesIdleConnections checks that an upload succeeds with a peer that
// silently closes each connection a few milliseconds after its reply. In earlier
// versions, every request after a query used the connection of that query, which was
// being closed, and so did every part after the list of parts.
func TestPeerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(multipartLarge)
	for _, after := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond} {
		for name, with := range map[string]func(*upload.Options){"session": func(*upload.Options) {}, "multipart": byMultipart} {
			inBubble(t, &fakegcs.Options{Rate: 20 * mib, Latency: 3 * time.Millisecond}, func(w *world) {
				w.addFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectCloseAfter, For: after}})
				if _, err := w.uploader(with).File(w.t.Context(), w.file(content), spec); err != nil {
					t.Fatalf("%s, %v: %v\n%s", name, after, err, w.trace())
				}
				w.wantOnlyObject(content)
				for _, e := range w.events {
					if e.Kind == upload.Waiting && (e.Part > 0 || name == "session") {
						t.Errorf("%s, %v: part %d waited: %s\n%s", name, after, e.Part, e.Cause, w.trace())
					}
				}
			})
		}
	}
}
