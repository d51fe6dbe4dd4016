package engine_test

import (
	"errors"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload/internal/atrisk"
	"gcsup/upload/internal/engine"
)

// TestInsertion checks what an insertion does after an insert whose outcome is not known, so that it replaces nothing that it has not seen,
// and what it does with the generation that it saw before. The clock of the service differs.
func TestInsertion(t *testing.T) {
	t.Parallel()
	const insert, get = faults.OpInsert, faults.OpGet
	ours, earlier, other := data(1000), []byte("from before"), []byte("of another client")
	lost, failed := on(insert, effect(faults.EffectLoseReply)), on(insert, status(503))
	hidden := always(get, status(403))
	not := int64(7)
	for _, tt := range []struct {
		name      string
		earlier   []byte        // the object at the start; nil if there is none
		age       time.Duration // of it
		between   []byte        // what another client writes while the insertion waits
		seen      int           // 1: the object was seen before; 2: it was seen, and replaced since; -1: it was seen that there is none
		spec      session.Spec
		faults    []faults.Fault
		err       error
		object    []byte
		identical bool
		log       string
	}{
		{name: "nothing there", object: ours, log: "insert 0-1000 200 done"},
		{name: "too many requests", faults: on(insert, status(429)), object: ours, log: "insert 0-1000 429 begin; wait 1s; insert 0-1000 200 done"},
		{name: "forbidden", faults: on(insert, status(403)), err: session.ErrPermission, log: "insert 0-1000 403 fail"},
		{name: "it did not arrive", faults: failed, object: ours, log: "insert 0-1000 503 check; wait 1s; stat 404 begin; insert 0-1000 200 done"},
		{name: "it arrived", faults: lost, object: ours, log: "insert lost check; wait 1s; stat 200 done"},
		{name: "it arrived in the place of another", earlier: earlier, age: time.Minute, faults: lost, object: ours, log: "insert lost check; stat 200 done"},
		{name: "it did not arrive, and an old object is there", earlier: earlier, age: time.Minute, faults: failed, object: ours, log: "insert 0-1000 503 check; wait 1s; stat 200 begin; insert 0-1000 200 done"},
		{name: "it did not arrive, and an old object has the same bytes", earlier: ours, age: time.Minute, faults: failed, object: ours, log: "insert 0-1000 503 check; wait 1s; stat 200 begin; insert 0-1000 200 done"},
		{name: "an object of the second before", earlier: earlier, age: time.Second, faults: failed, err: session.ErrOutcomeUnknown, object: earlier, log: "insert 0-1000 503 check; wait 1s; stat 200 fail"},
		{name: "another client, too", between: other, faults: lost, err: session.ErrOutcomeUnknown, object: other, log: "insert lost check; wait 1s; stat 200 fail"},
		{name: "another client, and it did not arrive", between: other, faults: failed, err: session.ErrOutcomeUnknown, object: other, log: "insert 0-1000 503 check; wait 1s; stat 200 fail"},
		{name: "another client, in the place of an old object", earlier: earlier, age: time.Minute, between: other, faults: failed, err: session.ErrOutcomeUnknown, object: other, log: "insert 0-1000 503 check; wait 1s; stat 200 fail"},
		{name: "another client, and every object has the metageneration", spec: session.Spec{IfMetagenerationMatch: new(int64(1))}, earlier: earlier, age: time.Minute, between: other, faults: failed, err: session.ErrOutcomeUnknown, object: other, log: "insert 0-1000 503 check; wait 1s; stat 200 fail"},
		{name: "it arrived, and the object cannot be read", faults: append(lost, hidden...), err: session.ErrOutcomeUnknown, object: ours, log: "insert lost check; wait 1s; stat 403 begin; insert 0-1000 412 check; stat 403 fail"},
		{name: "another client, and the object cannot be read", between: other, faults: append(failed, hidden...), err: session.ErrOutcomeUnknown, object: other,
			log: "insert 0-1000 503 check; wait 1s; stat 403 begin; insert 0-1000 412 check; stat 403 fail"},
		{name: "the object cannot be read", faults: append(failed, hidden...), object: ours, log: "insert 0-1000 503 check; wait 1s; stat 403 begin; insert 0-1000 200 done"},
		{name: "seen", earlier: earlier, seen: 1, object: ours, log: "insert 0-1000 200 done"},
		{name: "seen that there is none", seen: -1, object: ours, log: "insert 0-1000 200 done"},
		{name: "seen, and replaced by the same bytes", earlier: earlier, seen: 2, object: ours, identical: true, log: "insert 0-1000 412 check; stat 200 done"},
		{name: "seen that there is none, and made", earlier: earlier, seen: -1, object: ours, log: "insert 0-1000 412 check; stat 200 begin; insert 0-1000 200 done"},
		{name: "a condition", spec: session.Spec{IfGenerationMatch: new(int64)}, earlier: earlier, seen: -1, err: session.ErrPrecondition, object: earlier, log: "insert 0-1000 412 fail"},
		{name: "a condition, and it arrived", spec: session.Spec{IfGenerationMatch: new(int64)}, faults: lost, object: ours, log: "insert lost begin; wait 1s; insert 0-1000 412 check; stat 200 done"},
		{name: "another generation than one that is not there", spec: session.Spec{IfGenerationNotMatch: &not}, earlier: earlier, age: time.Minute, faults: failed, object: ours,
			log: "insert 0-1000 503 check; wait 1s; stat 200 begin; insert 0-1000 200 done"},
		{name: "an object is required", spec: session.Spec{IfGenerationNotMatch: new(int64)}, faults: failed, err: session.ErrPrecondition, log: "insert 0-1000 503 check; wait 1s; stat 404 begin"},
	} {
		for _, skew := range []time.Duration{0, time.Hour, -time.Hour} {
			t.Run(tt.name+" "+skew.String(), func(t *testing.T) {
				inBubble(t, fakegcs.Options{ClockSkew: skew, NoMD5: true}, func(w *world) {
					var seen *int64
					if tt.seen != 0 {
						seen = new(int64)
					}
					if tt.earlier != nil {
						if o := w.insert(tt.earlier); tt.seen > 0 {
							*seen = o.Generation
						}
					}
					if tt.seen == 2 {
						w.insert(ours)
					}
					time.Sleep(tt.age)
					w.add(tt.faults...)
					if tt.between != nil {
						w.onWait = func() { w.insert(tt.between) }
					}
					tt.spec.Bucket, tt.spec.Object = "bkt", "obj"
					src, identical := file(ours), false
					loaded, err := src.Load(w.t.Context())
					require.NoError(t, err)
					transfer := w.transfer(tt.spec, src, engine.TransferOptions{})
					o, err := engine.NewInsertion(transfer, loaded, seen, func() { identical = true }).Drive(w.t.Context())
					w.want(err, tt.err, tt.log)
					w.wantObject(tt.object)
					if identical != tt.identical || err == nil && (o.Size != 1000 || transfer.Wire.Pos.Sent.Load() != 1000) {
						t.Errorf("identical: %v, object %+v", identical, o)
					}
				})
			})
		}
	}
}

// TestFirstInsertIsTheOneInDoubt checks that the age of an object is that since the first insert whose outcome is not known: an object made
// after an earlier one, which was refused, is older.
func TestFirstInsertIsTheOneInDoubt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		first faults.Action
		err   error
	}{{status(429), nil}, {status(503), session.ErrOutcomeUnknown}} {
		inBubble(t, fakegcs.Options{NoMD5: true, Faults: append(on(faults.OpInsert, tt.first), faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Skip: 1, Do: status(503)})}, func(w *world) {
			w.uplink.Policy.Initial = 30 * time.Second
			time.AfterFunc(time.Second, func() { w.insert([]byte("of another client")) })
			src := file(data(5))
			loaded, _ := src.Load(w.t.Context())
			_, err := engine.NewInsertion(w.transfer(spec, src, engine.TransferOptions{}), loaded, nil, nil).Drive(w.t.Context())
			if !errors.Is(err, tt.err) {
				t.Errorf("%d: error = %v, want %v\n%v", tt.first.Status, err, tt.err, w)
			}
		})
	}
}

// TestInsertionHoldsItsRisk checks that an insertion begins when the bound of the bytes at risk permits it, not before, that it holds nothing in a
// wait, and that its bytes raise the bound.
func TestInsertionHoldsItsRisk(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{NoMD5: true, Faults: on(faults.OpInsert, status(429))}, func(w *world) {
		w.uplink.AtRisk = new(atrisk.Bound)
		first := w.uplink.AtRisk.Insert(atrisk.First)
		_ = first.Take(w.t.Context())
		time.AfterFunc(time.Minute, first.End)
		began := time.Now()
		time.AfterFunc(time.Minute+time.Second/2, func() { // in the wait
			if whole := w.uplink.AtRisk.Insert(atrisk.Least); whole.Take(w.t.Context()) != nil || time.Since(began) != time.Minute+time.Second/2 {
				t.Error("the insertion has bytes at risk while it waits")
			} else {
				whole.End()
			}
		})
		src := file(data(atrisk.First))
		loaded, _ := src.Load(w.t.Context())
		transfer := w.transfer(spec, src, engine.TransferOptions{})
		_, err := engine.NewInsertion(transfer, loaded, nil, nil).Drive(w.t.Context())
		if took := time.Since(began); err != nil || took != time.Minute+time.Second {
			t.Errorf("took %v: %v", took, err)
		}
		// Twice the bound of the start is permitted now, besides another request.
		for range 2 {
			_ = w.uplink.AtRisk.Insert(atrisk.First).Take(w.t.Context())
		}
		if time.Since(began) != time.Minute+time.Second {
			t.Error("the bytes of the insertion did not raise the bound")
		}
	})
}

// TestUnexpectedSizeIsNotInserted checks that the caller's checks come before the request.
func TestUnexpectedSizeIsNotInserted(t *testing.T) {
	t.Parallel()
	inBubble(t, fakegcs.Options{}, func(w *world) {
		src := file(data(5))
		loaded, _ := src.Load(w.t.Context())
		_, err := engine.NewInsertion(w.transfer(spec, src, engine.TransferOptions{Expect: engine.Expectation{Size: new(int64(6))}}), loaded, nil, nil).Drive(w.t.Context())
		w.want(err, engine.ErrTruncated, "")
	})
}
