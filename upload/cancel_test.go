package upload_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// unfinished leaves a saved upload with 2 MiB committed.
func (w *world) unfinished() (up *upload.Uploader, id, path string) {
	w.t.Helper()
	path = w.file(data(large))
	w.addFaults(
		faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: 2 * mib}},
		faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
	)
	up = w.uploader(largeChunks)
	res, err := up.File(w.t.Context(), path, spec)
	if !res.Resumable {
		w.t.Fatal(err)
	}
	w.srv.ClearFaults()
	return up, res.ID, path
}

// TestCancelErrors checks that Cancel returns a sentinel error, and deletes
// the saved upload if the session is finished or canceled.
func TestCancelErrors(t *testing.T) {
	t.Parallel()
	skipShort(t)
	canceling := func(do faults.Action, times int) faults.Fault {
		return faults.Fault{Match: faults.Match{Op: faults.OpCancel}, Times: times, Do: do}
	}
	for _, tt := range []struct {
		name  string
		fault faults.Fault
		want  error
		saved int
	}{
		{"403", canceling(faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}, 1), session.ErrPermission, 1},
		{"401 once", canceling(faults.Action{Effect: faults.EffectStatus, Status: 401}, 1), nil, 0},
		{"401 always", canceling(faults.Action{Effect: faults.EffectStatus, Status: 401}, -1), session.ErrCredentials, 1},
		{"503 once", canceling(faults.Action{Effect: faults.EffectStatus, Status: 503}, 1), nil, 0},
		{"503 always", canceling(faults.Action{Effect: faults.EffectStatus, Status: 503}, -1), session.ErrRetriesExhausted, 1},
		{"not found", canceling(faults.Action{Effect: faults.EffectNotFound}, 1), nil, 0},
		// Only the service can confirm the cancellation.
		{"200 of a captive portal", canceling(faults.Action{Effect: faults.EffectStatus, Status: 200, Body: "<html>please log in</html>"}, 1), nil, 0},
		{"404 of a proxy", canceling(faults.Action{Effect: faults.EffectStatus, Status: 404, Body: "<html>no backend</html>"}, 1), nil, 0},
	} {
		inBubble(t, nil, func(w *world) {
			up, id, _ := w.unfinished()
			w.addFaults(tt.fault)
			if err := up.Cancel(w.t.Context(), id); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			}
			w.wantSaved(tt.saved)
			if canceled := strings.HasSuffix(w.trace(), "cancel  -> 499\n"); canceled != (tt.saved == 0 && tt.name != "not found") {
				t.Errorf("%s: the session is canceled: %v\n%s", tt.name, canceled, w.trace())
			}
		})
	}
	inBubble(t, nil, func(w *world) {
		up, id, _ := w.unfinished()
		w.addFaults(canceling(faults.Action{Effect: faults.EffectStall}, -1))
		ctx, cancel := context.WithCancelCause(w.t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("the user said so")) })
		// The error of an upload would have its numbers, which are 0 here.
		const want = "cancel: context canceled: the user said so"
		if err := up.Cancel(ctx, id); !errors.Is(err, context.Canceled) || err.Error() != want {
			t.Errorf("interrupted: %v, want %s", err, want)
		}
		w.wantSaved(1)
	})
	inBubble(t, nil, func(w *world) { // finished, and the reply lost
		path := w.file(data(9 * mib))
		w.addFaults(
			faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectLoseReply}},
			faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
		)
		res, _ := w.uploader().File(w.t.Context(), path, spec)
		w.srv.ClearFaults()
		if err := w.uploader().Cancel(w.t.Context(), res.ID); err != nil || w.saw(upload.Warning) != 1 {
			t.Errorf("finished: %v, %d warnings", err, w.saw(upload.Warning))
		}
		w.wantSaved(0)
	})
}
