package upload_test

import (
	"errors"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// TestRefusals checks that a permanent failure ends the upload at once with a
// sentinel error, and does not change the destination.
func TestRefusals(t *testing.T) {
	t.Parallel()
	skipShort(t)
	status := func(code int, reason string) faults.Action {
		return faults.Action{Effect: faults.EffectStatus, Status: code, Reason: reason}
	}
	wrong := func(effect faults.Effect, n int64) faults.Action {
		return faults.Action{Effect: effect, Bytes: n}
	}
	for _, tt := range []struct {
		name     string
		plan     faults.Fault
		want     error
		requests int
		saved    int
	}{
		{"401 at start", faults.Fault{Match: faults.Match{Op: faults.OpStart}, Times: -1, Do: status(401, "authError")}, session.ErrCredentials, 2, 0},
		{"403 at start", faults.Fault{Match: faults.Match{Op: faults.OpStart}, Do: status(403, "forbidden")}, session.ErrPermission, 1, 0},
		{"daily quota", faults.Fault{Match: faults.Match{Op: faults.OpStart}, Do: status(403, "dailyLimitExceeded")}, session.ErrQuota, 1, 0},
		{"400 at start", faults.Fault{Match: faults.Match{Op: faults.OpStart}, Do: status(400, "invalid")}, session.ErrInvalid, 1, 0},
		{"404 at start", faults.Fault{Match: faults.Match{Op: faults.OpStart}, Do: status(404, "notFound")}, session.ErrNotFound, 1, 0},
		{"403 in the middle", faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 1, Do: status(403, "forbidden")}, session.ErrPermission, 3, 1},
		{"401 in the middle, always", faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 1, Times: -1, Do: status(401, "authError")}, session.ErrCredentials, 0, 1},
		{"400 in the middle", faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 1, Do: status(400, "invalid")}, session.ErrProtocol, 4, 1},
		{"413 in the middle", faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 1, Do: status(413, "uploadTooLarge")}, session.ErrProtocol, 4, 1},
		{"499", faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 1, Do: faults.Action{Effect: faults.EffectCanceled}}, session.ErrCanceled, 3, 0},
		{"412 at the end", faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: status(412, "conditionNotMet")}, session.ErrPrecondition, 0, 0},
		{"410 around a 412", faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectGone, Status: 412}}, session.ErrPrecondition, 0, 0},
		{"corrupted on the way, every time", faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: -1, Skip: 1, Do: wrong(faults.EffectCorrupt, 100)}, session.ErrChecksum, 0, 0},
		{"tail corrupted on the way, every time", faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Times: -1, Do: wrong(faults.EffectCorrupt, 100)}, session.ErrChecksum, 0, 0},
		{"offset going back", faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 2, Do: wrong(faults.EffectWrongRange, -3*q)}, session.ErrProtocol, 0, 0},
		{"offset beyond, always", faults.Fault{Times: -1, Skip: 2, Do: wrong(faults.EffectWrongRange, 2*q)}, session.ErrUnexpectedData, 0, 0},
		{"another object at the end", faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectWrongHash}}, session.ErrUnexpectedData, 0, 0},
		{"session lost four times", faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: -1, Do: faults.Action{Effect: faults.EffectNotFound}}, session.ErrSessionLost, 12, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, &fakegcs.Options{NoRunningHash: true, Faults: []faults.Fault{tt.plan}}, func(w *world) {
				content := data(6*q + 5000)
				res, err := w.uploader(func(o *upload.Options) { o.ChunkSize = 2 * q }).File(w.t.Context(), w.file(content), spec)
				if !errors.Is(err, tt.want) {
					t.Errorf("error = %v, want %v\n%s", err, tt.want, w.trace())
				}
				if res == nil || res.Object != nil || res.Resumable != (tt.saved > 0) {
					t.Errorf("Result = %+v", res)
				}
				if n := len(w.srv.Requests()); tt.requests > 0 && n != tt.requests {
					t.Errorf("%d requests, want %d\n%s", n, tt.requests, w.trace())
				}
				if _, there := w.srv.Object("bkt", "obj"); there && tt.name != "another object at the end" {
					t.Error("there is an object")
				}
				w.wantSaved(tt.saved)
			})
		})
	}
}
