package upload_test

import (
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/upload"
)

// TestZippedInPartsProgress checks that the progress of a resume begins with what earlier calls sent of the file, before
// the file is compressed again, and does not go back while it is.
func TestZippedInPartsProgress(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(zippedLarge) // it does not get smaller
	for _, complete := range []bool{false, true} {
		inBubbleWithMD5(t, slowly, func(w *world) {
			path := w.file(content)
			if complete {
				w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsComplete}, Do: faults.Action{Effect: faults.EffectStall}})
				w.timeOut(path, zipped, streamParts)
			} else {
				w.interruptZippedParts(path)
			}
			var first, last int64
			res, err := w.uploader(streamParts, func(o *upload.Options) {
				o.Observer = func(e upload.Event) {
					switch {
					case e.Kind == upload.Resumed && e.Source != nil:
						first, last = e.Source.Committed, e.Source.Committed
						if d := e.Committed - first; e.Committed == 0 || d > mib || d < -mib {
							t.Errorf("resumed with %d bytes of the file, and %d committed", first, e.Committed)
						}
					case first > 0 && e.Source.Committed < last-mib:
						t.Errorf("%v: %d bytes of the file, after %d", e.Kind, e.Source.Committed, last)
					case first > 0:
						last = e.Source.Committed
					}
				}
			}).File(w.t.Context(), path, zipped)
			if err != nil || !res.Resumed || first == 0 || complete && first != int64(len(content)) {
				t.Errorf("%+v, %v, resumed with %d bytes of the file", res, err, first)
			}
			w.wantZipped(content)
		})
	}
}
