package upload_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	"gcsup/fakegcs"
	"gcsup/upload"
)

// An upload is canceled when its object exists and its temporary objects are being deleted. The
// call deletes the others, too. Without a store, no later call could.
func TestPartsCanceledWhileCleaning(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content, plain := data(partsLarge), w.http.Transport
		ctx, stop := context.WithCancel(w.t.Context())
		defer stop()
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodDelete {
				stop()
			}
			return plain.RoundTrip(req)
		})}
		res, err := w.uploader(byParts, func(o *upload.Options) { o.Store = nil }).File(ctx, w.file(content), spec)
		if err != nil || res.Leftover != nil {
			t.Errorf("%v, %v", err, res.Leftover)
		}
		w.http = &http.Client{Transport: plain}
		w.wantOnlyObject(content)
	})
}

// A call that starts over is paused while it removes the parts of the saved upload, and the service
// does not answer. The bound of the cleanup then ends the requests, but is not why the call ended.
func TestPartsPausedWhileStartingOver(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{NoMD5: true, Rate: mib}, func(w *world) {
		path, plain := w.file(data(partsLarge)), w.http.Transport
		id := w.interruptParts(path).ID
		removing := make(chan struct{})
		var once sync.Once
		w.http = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.Method == http.MethodDelete {
				once.Do(func() { close(removing) })
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return plain.RoundTrip(req)
		})}
		up := w.uploader(byParts, func(o *upload.Options) { o.Restart = true })
		failed := make(chan error, 1)
		go func() {
			_, err := up.File(w.t.Context(), path, spec)
			failed <- err
		}()
		<-removing
		if err := up.Pause(w.t.Context(), id); err != nil {
			t.Error(err)
		}
		if err := <-failed; !errors.Is(err, upload.ErrPaused) || errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want ErrPaused", err)
		}
		w.wantSaved(1)
	})
}
