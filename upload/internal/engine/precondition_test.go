package engine_test

import (
	"errors"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload/internal/engine"
)

// TestPreconditionBeforeData checks that a precondition is compared with the destination before the first byte is sent, and that the service
// decides if the destination cannot be read.
func TestPreconditionBeforeData(t *testing.T) {
	t.Parallel()
	none, one := new(int64), new(int64(1))
	newly, replace := session.Spec{IfGenerationMatch: none}, session.Spec{IfGenerationNotMatch: none}
	const send = "start 200 send; finalize 0-5 200 done"
	for _, tt := range []struct {
		name   string
		spec   session.Spec
		exists bool
		listed bool // a listing showed that there is no object
		resume bool
		faults []faults.Fault
		err    error
		log    string
	}{
		{name: "no condition", log: send},
		{name: "met", spec: newly, log: "stat 404 absent; " + send},
		{name: "met by a listing", spec: newly, listed: true, log: send},
		{name: "not met", spec: newly, exists: true, err: session.ErrPrecondition, log: "stat 200 done"},
		{name: "an object is required", spec: replace, exists: true, log: "stat 200 done; " + send},
		{name: "an object is required, and a listing shows none", spec: replace, exists: true, listed: true, log: "stat 200 done; " + send},
		{name: "an object is required, and there is none", spec: replace, err: session.ErrPrecondition, log: "stat 404 absent; start 200; cancel 499"},
		{name: "the same, in a session of another process", spec: replace, resume: true, err: session.ErrPrecondition, log: "query 308 send; stat 404 absent"},
		{name: "another generation", spec: session.Spec{IfGenerationMatch: one}, exists: true, err: session.ErrPrecondition, log: "stat 200 done"},
		{name: "no such bucket", spec: session.Spec{Bucket: "none", IfGenerationMatch: one}, err: session.ErrNotFound, log: "stat 404 absent; start 404 fail"},
		{name: "hidden", spec: newly, faults: on(faults.OpGet, status(403)), log: "stat 403 fail; " + send},
		{name: "unavailable", spec: newly, faults: always(faults.OpGet, status(503)), err: session.ErrRetriesExhausted, log: "stat 503 repeat; wait 1s; stat 503 repeat"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, fakegcs.Options{}, func(w *world) {
				if tt.exists {
					w.insert(data(3))
				}
				w.add(tt.faults...)
				w.uplink.Budget = engine.NewSharedBudget(engine.RetryRule{Retries: 1})
				if tt.spec.Object = "obj"; tt.spec.Bucket == "" {
					tt.spec.Bucket = "bkt"
				}
				p, src := &w.precondition, file(data(5))
				if tt.listed {
					p.Absent(tt.spec)
				}
				r := w.run(tt.spec, src, engine.TransferOptions{})
				r.Wire.Pos.Committed.Store(4)
				if tt.resume {
					r = engine.ResumedRun(r.Transfer, p, session.State{Size: 5}, engine.Resumption{URI: w.session(nil), Seek: src.Seek, Resumed: func(int64) {}})
				}
				_, err := r.Drive(w.t.Context())
				w.want(err, tt.err, tt.log)
				if e, ok := errors.AsType[*session.Error](err); ok && e.Early && (e.Attempts == 0 || tt.exists && e.Offset != 4) {
					t.Errorf("error %+v", e)
				}
				if met := err == nil || errors.Is(err, session.ErrNotFound); (p.Unmet() == nil) != (met || tt.exists || tt.faults != nil) && !errors.Is(err, session.ErrNotFound) {
					t.Errorf("postponed: %v", p.Unmet())
				}
			})
		})
	}
	if (*engine.Precondition)(nil).Look(t.Context(), nil) != nil || (*engine.Precondition)(nil).Unmet() != nil {
		t.Error("no precondition is not met")
	}
}
