package upload_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/testsize"
	"gcsup/upload"
)

// TestFileSurvives checks that a file is uploaded despite each fault, at the
// start, at the first data, in the middle and at the end, also if it is compressed.
func TestFileSurvives(t *testing.T) {
	t.Parallel()
	plain, compressed := data(7*q+12345), text(7*q+12345)
	late := fault{"late commit", faults.Fault{Do: faults.Action{Effect: faults.EffectLateCommit, Bytes: q, For: 3 * time.Second}}} // after the reply to the query
	atEnd := slices.Concat(objectFaults, finalFaults, dataFaults)
	eachFault(t, testsize.Full(1, 3), []point{
		{"start", faults.Match{Op: faults.OpStart}, nil},
		{"first data", faults.Match{Op: faults.OpPut}, slices.Concat(dataFaults, []fault{late})},
		{"middle", faults.Match{Op: faults.OpPut, From: 4 * q, To: 5 * q}, dataFaults},
		{"end", faults.Match{Op: faults.OpFinalize}, atEnd},
		{"small", faults.Match{Op: faults.OpInsert}, objectFaults},
		{"start, compressed", faults.Match{Op: faults.OpStart}, nil},
		{"middle, compressed", faults.Match{Op: faults.OpPut, From: 2 * q, To: 3 * q}, dataFaults},
		{"end, compressed", faults.Match{Op: faults.OpFinalize}, atEnd},
		{"small, compressed", faults.Match{Op: faults.OpInsert}, objectFaults},
	}, func(w *world, at string, do faults.Action) {
		content, to := plain, spec
		if strings.HasSuffix(at, "compressed") {
			content, to = compressed, zipped
		}
		with := func(o *upload.Options) {
			if o.ChunkSize = 2 * q; to.Gzip {
				o.Window = int(2 * q)
			}
		}
		if strings.HasPrefix(at, "small") {
			with = func(*upload.Options) {}
		}
		res, err := w.uploader(with).File(w.t.Context(), w.file(content), to)
		if err != nil {
			w.t.Fatalf("%v\n%s", err, w.trace())
		}
		w.wantFile(content, to.Gzip)
		w.wantSaved(0)
		w.wantFaults()
		seen := len(w.srv.Requests())
		if do.Effect == faults.EffectStall {
			seen++ // the server records it when it has ended
		}
		if res.Requests != seen {
			w.t.Errorf("Result.Requests = %d, the server saw %d\n%s", res.Requests, seen, w.trace())
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, e := range w.events {
			if e.Delay >= 60e9 {
				w.t.Errorf("a wait of %v", e.Delay)
			}
		}
	})
}
