package upload_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
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
					if err != nil {
						t.Fatal(err)
					}
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

// TestPreconditions checks that an upload whose precondition does not hold
// fails before its first byte is sent.
func TestPreconditions(t *testing.T) {
	t.Parallel()
	with := func(g int64) upload.Spec {
		s := spec
		s.IfGenerationMatch = &g
		return s
	}
	small, large := data(1000), data(9*mib)
	for _, tt := range []struct {
		name    string
		content []byte
		exists  bool
		want    func(generation int64) upload.Spec
		ok      bool
		trace   string
	}{
		{"none, and none is wanted", large, false, func(int64) upload.Spec { return with(0) }, true, "get  -> 404\nstart  -> 200\nput 0-9175039/9437184 -> 200 bytes=0-9175039\nfinalize 9175040-9437183/9437184 -> 200\n"},
		{"one, and none is wanted", large, true, func(int64) upload.Spec { return with(0) }, false, "get  -> 200\n"},
		{"one, and that is wanted", large, true, with, true, "get  -> 200\nstart  -> 200\nput 0-9175039/9437184 -> 200 bytes=0-9175039\nfinalize 9175040-9437183/9437184 -> 200\n"},
		{"one, and another is wanted", large, true, func(int64) upload.Spec { return with(7) }, false, "get  -> 200\n"},
		{"none, and one is wanted", large, false, func(int64) upload.Spec { return with(7) }, false, "get  -> 404\nstart  -> 200\ncancel  -> 499\n"},
		{"small: none, and none is wanted", small, false, func(int64) upload.Spec { return with(0) }, true, "get  -> 404\ninsert  -> 200\n"},
		{"small: one, and none is wanted", small, true, func(int64) upload.Spec { return with(0) }, false, "get  -> 200\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				var before string
				if tt.exists {
					if _, err := w.uploader().File(w.t.Context(), w.file([]byte("before")), spec); err != nil {
						t.Fatal(err)
					}
					before = w.trace()
				}
				o, _ := w.srv.Object("bkt", "obj")
				_, err := w.uploader().File(w.t.Context(), w.file(tt.content), tt.want(o.Generation))
				if tt.ok && err != nil || !tt.ok && !errors.Is(err, session.ErrPrecondition) {
					t.Errorf("error = %v", err)
				}
				if got := strings.TrimPrefix(w.trace(), before); got != tt.trace {
					t.Errorf("requests:\n%swant:\n%s", got, tt.trace)
				}
				switch {
				case tt.ok:
					w.wantObject("obj", tt.content)
				case tt.exists:
					w.wantObject("obj", []byte("before"))
				}
				w.wantSaved(0)
			})
		})
	}
}

// TestOwnSuccess checks that a 412 after a lost reply is a success if the
// object is the one that was sent.
func TestOwnSuccess(t *testing.T) {
	skipShort(t)
	t.Parallel()
	zero := int64(0)
	conditional := spec
	conditional.IfGenerationMatch = &zero
	for _, tt := range []struct {
		name string
		size int64
		op   faults.Op
	}{{"small", 1000, faults.OpInsert}, {"resumable", 9 * mib, faults.OpFinalize}} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				content := data(tt.size)
				w.addFaults(
					faults.Fault{Match: faults.Match{Op: tt.op}, Do: faults.Action{Effect: faults.EffectLoseReply}},
					// The session no longer exists either: only the object is left.
					faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Do: faults.Action{Effect: faults.EffectNotFound}},
				)
				res, err := w.uploader().File(w.t.Context(), w.file(content), conditional)
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				w.wantObject("obj", content)
				if o, _ := w.srv.Object("bkt", "obj"); res.Object.Generation != o.Generation {
					t.Errorf("generation %d, want %d", res.Object.Generation, o.Generation)
				}
			})
		})
	}
	t.Run("someone else's", func(t *testing.T) {
		inBubble(t, nil, func(w *world) {
			content, theirs := data(9*mib), data(9*mib + 1)[1:]
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}})
			up := w.uploader(func(o *upload.Options) {
				observe := o.Observer
				o.Observer = func(e upload.Event) {
					observe(e)
					if e.Kind == upload.Waiting {
						other := filepath.Join(w.dir, "theirs")
						if err := os.WriteFile(other, theirs, 0o600); err != nil {
							t.Error(err)
						}
						if _, err := w.uploader(func(o *upload.Options) { o.Store = nil }).File(w.t.Context(), other, spec); err != nil {
							t.Error(err)
						}
					}
				}
			})
			_, err := up.File(w.t.Context(), w.file(content), conditional)
			if !errors.Is(err, session.ErrPrecondition) {
				t.Errorf("error = %v, want ErrPrecondition\n%s", err, w.trace())
			}
			w.wantObject("obj", theirs)
		})
	})
}
