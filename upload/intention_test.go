package upload_test

import (
	"fmt"
	"testing"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
)

// changing returns the requests that change something by the JSON API, and fails if one of them
// has no idempotency token or another request has one. It also fails if two requests that
// differ have the same token.
func (w *world) changing() (list []fakegcs.Request) {
	w.t.Helper()
	was := map[string]string{}
	for _, r := range w.srv.Requests() {
		// A query with a total finalizes the object.
		if r.Method == "GET" || r.ContentRange == "bytes */*" {
			if r.IdempotencyToken != "" {
				w.t.Errorf("%s has a token", r.Op)
			}
			continue
		}
		what := fmt.Sprint(r.Method, " ", r.Path, " ", r.ContentRange)
		switch before, ok := was[r.IdempotencyToken]; {
		case r.IdempotencyToken == "":
			w.t.Errorf("%s has no token", what)
		case ok && before != what:
			w.t.Errorf("%s has the token of %s", what, before)
		}
		was[r.IdempotencyToken] = what
		list = append(list, r)
	}
	return list
}

// TestRepeatHasItsToken checks for each kind of request that its repeat has the same token, and
// that no other request has it.
func TestRepeatHasItsToken(t *testing.T) {
	t.Parallel()
	unavailable := faults.Action{Effect: faults.EffectStatus, Status: 503}
	lost := faults.Action{Effect: faults.EffectLoseReply}
	for op, effects := range map[faults.Op][]faults.Action{
		faults.OpStart:    {unavailable, lost},
		faults.OpPut:      {unavailable}, // after a lost reply, other bytes are sent
		faults.OpFinalize: {unavailable},
		faults.OpCompose:  {unavailable}, // after a lost reply, the object is found
		faults.OpDelete:   {unavailable, lost},
		faults.OpInsert:   {unavailable, lost},
	} {
		for _, do := range effects {
			inBubble(t, &fakegcs.Options{Faults: []faults.Fault{{Match: faults.Match{Op: op}, Do: do}}}, func(w *world) {
				content, with, s := data(partsLarge), byParts, spec
				if op == faults.OpInsert {
					content, with, s.IfGenerationMatch = data(1000), withoutStore, new(int64)
				}
				if _, err := w.uploader(with).File(w.t.Context(), w.file(content), s); err != nil {
					t.Fatalf("%s, %s: %v", op, do.Effect, err)
				}
				tokens, repeated := map[string]int{}, ""
				for _, r := range w.changing() {
					tokens[r.IdempotencyToken]++
					if r.Fault != "" {
						repeated = r.IdempotencyToken
					}
				}
				for token, n := range tokens {
					want := map[bool]int{true: 2, false: 1}[token == repeated]
					if op == faults.OpDelete && do == lost && token == repeated {
						want = 3 // the first 404 must be confirmed
					}
					if n != want {
						t.Errorf("%s, %s: %d requests with a token, want %d\n%s", op, do.Effect, n, want, w.trace())
					}
				}
			})
		}
	}
}

// TestNewTokens checks that a request has a new token if the same request succeeded before, and
// must be executed again.
func TestNewTokens(t *testing.T) {
	t.Parallel()
	fault := func(op faults.Op, do faults.Action) faults.Fault {
		return faults.Fault{Match: faults.Match{Op: op}, Do: do}
	}
	notFinal := faults.Action{Effect: faults.EffectNotFinal}
	for name, faults := range map[string][]faults.Fault{
		"a new session":                {fault(faults.OpPut, faults.Action{Effect: faults.EffectNotFound})},
		"nothing of it was committed":  {fault(faults.OpPut, faults.Action{Effect: faults.EffectShortCommit, Bytes: large})},
		"it did not finish the object": {fault(faults.OpFinalize, notFinal), fault(faults.OpFinalize, notFinal), fault(faults.OpFinalize, notFinal)},
	} {
		inBubble(t, &fakegcs.Options{Faults: faults}, func(w *world) {
			if _, err := w.uploader(largeChunks).File(w.t.Context(), w.file(data(large)), spec); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, w.trace())
			}
			w.wantFaults()
			seen := map[string]bool{}
			for _, r := range w.changing() {
				if seen[r.IdempotencyToken] {
					t.Errorf("%s: the %s has an old token\n%s", name, r.Op, w.trace())
				}
				seen[r.IdempotencyToken] = true
			}
		})
	}
}

// TestLostReplyMakesOneGeneration checks how often a small file is written if the reply is
// lost, with and without tokens.
func TestLostReplyMakesOneGeneration(t *testing.T) {
	t.Parallel()
	for _, forgets := range []bool{false, true} {
		for _, conditional := range []bool{false, true} {
			inBubbleWithMD5(t, &fakegcs.Options{NoMD5: true, NoIdempotencyTokens: forgets, Faults: []faults.Fault{
				{Match: faults.Match{Op: faults.OpInsert}, Times: 2, Do: faults.Action{Effect: faults.EffectLoseReply}},
			}}, func(w *world) {
				s := spec
				if conditional {
					s.IfGenerationMatch = new(int64)
				}
				content := data(1000)
				res, err := w.uploader().File(w.t.Context(), w.file(content), s)
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				w.wantObject("obj", content)
				executed, replayed := 0, 0
				for _, r := range w.changing() {
					switch {
					case r.Replayed:
						replayed++
					case r.Status == 200 || r.Fault != "" && executed == 0:
						executed++
					}
				}
				// Without a precondition, the destination is checked before a repeat.
				want := map[bool]int{true: 2, false: 0}[conditional && !forgets]
				if o, _ := w.srv.Object("bkt", "obj"); executed != 1 || replayed != want || o.Generation != res.Object.Generation {
					t.Errorf("tokens forgotten: %v, conditional: %v: %d inserts executed, %d replayed, want %d; generation %d, want %d\n%s",
						forgets, conditional, executed, replayed, want, res.Object.Generation, o.Generation, w.trace())
				}
			})
		}
	}
}
