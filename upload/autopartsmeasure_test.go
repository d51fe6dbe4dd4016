package upload_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// TestAutoPartsKeepsConnections checks that a file is divided although its saved upload cannot be
// deleted, and that the request that is cut does not make later ones use connections of their own.
func TestAutoPartsKeepsConnections(t *testing.T) {
	t.Parallel()
	content := data(24 * mib)
	inBubble(t, distant(64*mib), func(w *world) {
		next := w.http.Transport
		var closing atomic.Int64
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.Close {
				closing.Add(1)
			}
			return next.RoundTrip(req)
		})}
		up := w.uploader(auto, func(o *upload.Options) {
			o.Store = hook(w.store, failAfter(0, errors.New("disk is broken")), "Delete")
		})
		res, err := up.File(w.t.Context(), w.file(content), spec)
		if err != nil || res.Parts == nil || w.saw(upload.Divided) != 1 {
			t.Errorf("%+v, %v", res.Parts, err)
		}
		if n := closing.Load(); n != 0 {
			t.Errorf("%d requests close their connection", n)
		}
		w.wantObject("obj", content)
	})
}

// TestAutoPartsProbes checks that other files do not wait for the outcome of a retry that has none: the circuit breaker
// admitted the data of a connection that is slow, or a question about the destination before the parts, which have
// retries of their own.
func TestAutoPartsProbes(t *testing.T) {
	t.Parallel()
	for _, probe := range []faults.Op{faults.OpPut, faults.OpGet} {
		inBubble(t, distant(mib), func(w *world) {
			const small = 4
			refuse := func(op faults.Op, times int, wait string) {
				do := faults.Action{Effect: faults.EffectStatus, Status: 503, RetryAfter: wait, Early: op == faults.OpPut}
				w.addFaults(faults.Fault{Match: faults.Match{Op: op}, Times: times, Do: do})
			}
			refuse(probe, 1, "")
			refuse(faults.OpInsert, small, "4") // the large file retries first
			up, path := w.uploader(auto), w.file(data(64*mib))
			start := time.Now()
			var large, files sync.WaitGroup
			large.Go(func() {
				w.fails(nil)(up.File(w.t.Context(), path, spec))
			})
			for i := range small {
				files.Go(func() {
					s := upload.Spec{Bucket: "bkt", Object: fmt.Sprint(i)}
					w.fails(nil)(up.Reader(w.t.Context(), bytes.NewReader(data(1000)), s))
				})
			}
			files.Wait()
			if took := time.Since(start); took > 5*time.Second || w.saw(upload.Divided) != 1 {
				t.Errorf("%s: small files took %v\n%s", probe, took, w.trace())
			}
			large.Wait()
		})
	}
}
