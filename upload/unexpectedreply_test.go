package upload_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// TestRepliesOfStrangersKeepTheSession checks that replies which are not from the service discard no committed bytes: twice to one
// kind of request, and to all requests until the retries are spent. The tests of package session have all statuses.
func TestRepliesOfStrangersKeepTheSession(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(large)
	for _, code := range []int{302, 400, 404, 407, 410, 412, 499} {
		for _, op := range []faults.Op{faults.OpPut, faults.OpQuery, faults.OpFinalize, ""} {
			inBubble(t, nil, func(w *world) {
				path := w.file(content)
				w.interrupt(path, 2*mib, largeChunks)
				strange := faults.Fault{Match: faults.Match{Op: op}, Times: 2, Do: faults.Action{Effect: faults.EffectStatus, Status: code, Body: "<html>no backend</html>"}}
				if op == "" {
					strange.Times = -1
				}
				w.addFaults(strange)
				res, err := w.uploader(largeChunks).File(w.t.Context(), path, spec)
				if op == "" {
					if !errors.Is(err, session.ErrRetriesExhausted) || !strings.Contains(err.Error(), fmt.Sprint(code)) || !res.Resumable {
						t.Errorf("%d always: %v", code, err)
					}
					w.wantSaved(1)
					w.srv.ClearFaults()
					res, err = w.uploader(largeChunks).File(w.t.Context(), path, spec)
				}
				if n := w.srv.Stats().Ops[faults.OpStart]; err != nil || res.ResumedFrom != 2*mib || n != 1 || w.saw(upload.Restarted) != 0 {
					t.Errorf("%d to %q: %+v, %v, %d sessions were started\n%s", code, op, res, err, n, w.trace())
				}
				w.wantObject("obj", content)
				w.wantSaved(0)
			})
		}
	}
}
