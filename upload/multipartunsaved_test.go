package upload_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/session/state"
	"gcsup/upload"
)

// TestMultipartRestartUnsaved resumes an upload whose multipart upload is gone, while the disk is full. The
// next multipart upload cannot be saved. No later process could abort it, so that no part is sent.
func TestMultipartRestartUnsaved(t *testing.T) {
	t.Parallel()
	content := data(multipartLarge)
	inBubble(t, slowly, func(w *world) {
		path := w.file(content)
		w.interruptMultipart(path)
		w.abortAll()
		before := len(w.srv.Requests())
		full := &fillingDisk{Store: w.store}
		full.full.Store(true)
		_, err := w.uploader(byMultipart, func(o *upload.Options) { o.Store = full }).File(w.t.Context(), path, spec)
		if !errors.Is(err, errUnsaving) {
			t.Errorf("error = %v", err)
		}
		for _, r := range w.srv.Requests()[before:] {
			if r.Op == faults.OpPartsPut {
				t.Error("a part was sent")
			}
		}
		w.wantNoUploads()
		full.full.Store(false)
		if _, err := w.uploader(byMultipart).File(w.t.Context(), path, spec); err != nil {
			t.Fatalf("%v\n%s", err, w.trace())
		}
		w.wantOnlyObject(content)
	})
}

// fillingDisk is a store on a disk that can be full.
type fillingDisk struct {
	state.Store
	full atomic.Bool
}

func (d *fillingDisk) Save(ctx context.Context, t *state.Token) error {
	if d.full.Load() {
		return errUnsaving
	}
	return d.Store.Save(ctx, t)
}
