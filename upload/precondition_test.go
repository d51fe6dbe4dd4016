package upload_test

import (
	"errors"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// TestPreconditionHasOneType checks that a failed precondition has the same type and
// status if the uploader or if the service found it, and that the early error has the
// existing object.
func TestPreconditionHasOneType(t *testing.T) {
	t.Parallel()
	late := faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectStatus, Status: 412, Reason: "conditionNotMet"}}
	onlyNew, five := spec, spec
	onlyNew.IfGenerationMatch = new(int64)
	five.IfGenerationMatch = new(int64(5))
	for _, tt := range []struct {
		name   string
		spec   upload.Spec
		exists bool
		faults []faults.Fault
		op     session.Op
		text   string
	}{
		{"an object exists", onlyNew, true, nil, session.OpStat, "precondition failed: gs://bkt/obj exists (generation "},
		{"there is no object", five, false, nil, session.OpStat, "precondition failed: there is no gs://bkt/obj, want generation 5"},
		{"the service refuses", spec, false, []faults.Fault{late}, session.OpFinalize, "finalize: precondition failed: 412 Precondition Failed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, &fakegcs.Options{Faults: tt.faults}, func(w *world) {
				path := w.file(data(large))
				var generation int64
				if tt.exists {
					res, err := w.uploader().File(w.t.Context(), path, spec)
					require.NoError(t, err)
					generation = res.Object.Generation
				}
				_, err := w.uploader(largeChunks).File(w.t.Context(), path, tt.spec)
				e, ok := errors.AsType[*session.Error](err)
				if !ok || !errors.Is(err, session.ErrPrecondition) || !strings.HasPrefix(err.Error(), tt.text) {
					t.Fatalf("error = %T %v, want a *session.Error: %s", err, err, tt.text)
				}
				if e.Status != 412 || e.Op != tt.op || e.Early != (tt.op == session.OpStat) || e.Attempts == 0 {
					t.Errorf("error = %+v", e)
				}
				if (e.Existing != nil) != tt.exists || tt.exists && e.Existing.Generation != generation {
					t.Errorf("existing = %+v, want generation %d", e.Existing, generation)
				}
			})
		})
	}
}

// TestMissingBucketWithPrecondition checks that a missing bucket is reported
// as not found even if there is a precondition, for small and for large files.
func TestMissingBucketWithPrecondition(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for _, size := range []int64{9 * mib, 100} {
		inBubble(t, nil, func(w *world) {
			five := int64(5)
			_, err := w.uploader().File(w.t.Context(), w.file(data(size)), upload.Spec{Bucket: "nobucket", Object: "o", IfGenerationMatch: &five})
			if !errors.Is(err, session.ErrNotFound) {
				t.Errorf("%d bytes: %v, want ErrNotFound", size, err)
			}
		})
	}
}
