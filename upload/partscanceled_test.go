package upload_test

import (
	"context"
	"net/http"
	"testing"

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
