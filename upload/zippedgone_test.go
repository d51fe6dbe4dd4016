package upload_test

import (
	"strings"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// loseZipped interrupts a compressed file in parts before its multipart upload is completed, and aborts that.
func (w *world) loseZipped(path string) {
	w.t.Helper()
	w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsComplete}, Do: faults.Action{Effect: faults.EffectStall}})
	w.timeOut(path, zipped, streamParts)
	w.wantSaved(1)
	w.abortAll()
}

// TestZippedInPartsRefusedRemoval resumes a compressed file whose multipart upload is gone, with a version of the program
// that compresses it to another size. It starts another multipart upload, and starts over after that. Of the two, the one
// that the service refuses to abort stays on record.
func TestZippedInPartsRefusedRemoval(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubbleWithMD5(t, slowly, func(w *world) {
		content := data(zippedLarge)
		path := w.file(content)
		w.loseZipped(path)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsAbort}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}})
		up := w.uploader(streamParts)
		upload.SetGzipLevel(up, 6)
		res, err := up.File(w.t.Context(), path, zipped)
		if err != nil || res.Leftover == nil || w.saw(upload.Discarded) != 1 {
			t.Fatalf("%+v, %v, %d discarded\n%s", res, err, w.saw(upload.Discarded), w.trace())
		}
		w.wantUnzipped("obj", content, true)
		w.wantSaved(1)
		if n := w.multipartUploads(); n != 1 { // this also ends the fault
			t.Errorf("%d multipart uploads", n)
		}
		for p, err := range up.Prune(w.t.Context(), nil) {
			if err != nil || !p.Deleted || !strings.HasPrefix(p.ID, "removed-") {
				t.Errorf("%+v, %v", p, err)
			}
		}
		w.wantSaved(0)
		w.wantNoUploads()
	})
}
