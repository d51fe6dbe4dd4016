package upload_test

import (
	"errors"
	"testing"

	"gcsup/fakegcs"
	"gcsup/session"
	"gcsup/upload"
)

// TestRefusals checks that a permanent failure ends the upload at once with a
// sentinel error, and does not change the destination.
func TestRefusals(t *testing.T) {
	t.Parallel()
	skipShort(t)
	status := func(code int, reason string) fakegcs.Action {
		return fakegcs.Action{Effect: fakegcs.EffectStatus, Status: code, Reason: reason}
	}
	wrong := func(effect fakegcs.Effect, n int64) fakegcs.Action {
		return fakegcs.Action{Effect: effect, Bytes: n}
	}
	for _, tt := range []struct {
		name     string
		plan     fakegcs.Fault
		want     error
		requests int
		saved    int
	}{
		{"401 at start", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpStart}, Times: -1, Do: status(401, "authError")}, session.ErrCredentials, 2, 0},
		{"403 at start", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpStart}, Do: status(403, "forbidden")}, session.ErrPermission, 1, 0},
		{"daily quota", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpStart}, Do: status(403, "dailyLimitExceeded")}, session.ErrQuota, 1, 0},
		{"400 at start", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpStart}, Do: status(400, "invalid")}, session.ErrInvalid, 1, 0},
		{"404 at start", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpStart}, Do: status(404, "notFound")}, session.ErrNotFound, 1, 0},
		{"403 in the middle", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Skip: 1, Do: status(403, "forbidden")}, session.ErrPermission, 3, 1},
		{"401 in the middle, always", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Skip: 1, Times: -1, Do: status(401, "authError")}, session.ErrCredentials, 0, 1},
		{"400 in the middle", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Skip: 1, Do: status(400, "invalid")}, session.ErrProtocol, 4, 1},
		{"413 in the middle", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Skip: 1, Do: status(413, "uploadTooLarge")}, session.ErrProtocol, 4, 1},
		{"499", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Skip: 1, Do: fakegcs.Action{Effect: fakegcs.EffectCanceled}}, session.ErrCanceled, 3, 0},
		{"412 at the end", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpFinalize}, Do: status(412, "conditionNotMet")}, session.ErrPrecondition, 0, 0},
		{"410 around a 412", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpFinalize}, Do: fakegcs.Action{Effect: fakegcs.EffectGone, Status: 412}}, session.ErrPrecondition, 0, 0},
		{"corrupted on the way, every time", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Times: -1, Skip: 1, Do: wrong(fakegcs.EffectCorrupt, 100)}, session.ErrChecksum, 0, 0},
		{"tail corrupted on the way, every time", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpFinalize}, Times: -1, Do: wrong(fakegcs.EffectCorrupt, 100)}, session.ErrChecksum, 0, 0},
		{"offset going back", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Skip: 2, Do: wrong(fakegcs.EffectWrongRange, -3*q)}, session.ErrProtocol, 0, 0},
		{"offset beyond, always", fakegcs.Fault{Times: -1, Skip: 2, Do: wrong(fakegcs.EffectWrongRange, 2*q)}, session.ErrUnexpectedData, 0, 0},
		{"another object at the end", fakegcs.Fault{Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectWrongHash}}, session.ErrUnexpectedData, 0, 0},
		{"session lost four times", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectNotFound}}, session.ErrSessionLost, 12, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, &fakegcs.Options{Faults: []fakegcs.Fault{tt.plan}}, func(w *world) {
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
