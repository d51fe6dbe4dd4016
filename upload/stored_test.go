package upload_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/upload"
)

// An interrupted upload asks the service once what it stores, and saves the answer.
func TestInterruptedAsksWhatIsStored(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]func(*upload.Options){"one session": func(*upload.Options) {}, "in parts": func(o *upload.Options) { o.Parallel = composed(2, 8*mib) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, &fakegcs.Options{NoMD5: true, Rate: mib}, func(w *world) {
				ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
				defer cancel()
				up := w.uploader(with)
				began := time.Now()
				res, err := up.File(ctx, w.file(data(20*mib)), spec)
				e, ok := errors.AsType[*upload.InterruptedError](err)
				if !ok || !res.Resumable || time.Since(began) > 12*time.Second {
					t.Fatalf("%v after %v", err, time.Since(began))
				}
				for saved, err := range up.Saved(w.t.Context()) {
					held, qerr := up.Query(w.t.Context(), saved.ID)
					if err != nil || qerr != nil || saved.Committed != held.Stored || e.Committed != held.Stored || held.Stored < 8*mib {
						t.Errorf("saved are %d bytes, reported %d, stored %d; %v, %v", saved.Committed, e.Committed, held.Stored, err, qerr)
					}
				}
			})
		})
	}
}
