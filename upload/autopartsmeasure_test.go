package upload_test

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"

	"gcsup/fakegcs"
	"gcsup/upload"
)

// TestAutoPartsHiccup checks that a request that fails, and the wait after it, do not count as a slow connection.
func TestAutoPartsHiccup(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{NoMD5: true}, func(w *world) {
		next := w.http.Transport
		var failed atomic.Bool
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodPut && !failed.Swap(true) {
				_, _ = io.CopyN(io.Discard, req.Body, mib)
				_ = req.Body.Close()
				return nil, syscall.ECONNRESET
			}
			return next.RoundTrip(req)
		})}
		content := data(24 * mib)
		res, err := w.uploader(auto).File(w.t.Context(), w.file(content), spec)
		if err != nil || res.Parts != nil || res.Retries != 1 || len(w.undivided()) != 1 {
			t.Errorf("%+v, %d retries, %q, %v", res.Parts, res.Retries, w.undivided(), err)
		}
	})
}

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
