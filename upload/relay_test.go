package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session/state"
	"gcsup/upload"
)

// TestRelay passes one upload between three machines, by new and old exports, while
// requests fail. Some copies differ. It checks that an object is always the complete
// copy of one machine, and that this machine reports success.
func TestRelay(t *testing.T) {
	t.Parallel()
	skipShort(t)
	sizes := []int64{q, q + 1, 2 * q, 3*q - 1, 8 * q, 8*q + 1, 12*q + 5}
	seeds := uint64(testsize.Raced(8, testsize.Full(60, 20)))
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			opts := &fakegcs.Options{NoMD5: rnd.IntN(3) > 0, NoRunningHash: rnd.IntN(3) > 0}
			content := data(sizes[rnd.IntN(len(sizes))])
			inBubbleWithMD5(t, opts, func(w *world) {
				r := relay{w: w, rnd: rnd}
				for i := range r.stores {
					r.copies[i] = bytes.Clone(content)
					if i > 0 && rnd.IntN(2) == 0 {
						// Copies differ in the first and in the last committed bytes, so that a mixture is
						// equal to none of them.
						r.copies[i][rnd.Int64N(q)] ^= byte(i)
						r.copies[i][len(content)-1] ^= byte(i)
					}
					r.paths[i] = filepath.Join(w.dir, fmt.Sprint("copy", i))
					store, err := state.OpenDir(fmt.Sprint(w.state, i))
					require.NoError(t, errors.Join(err, os.WriteFile(r.paths[i], r.copies[i], 0o600)))
					defer store.Close()
					r.stores[i] = store
				}
				for turn, at := 0, 0; turn < 12 && !r.work(at); turn++ {
					at = r.handOver(at)
				}
			})
		})
	}
}

type relay struct {
	w       *world
	rnd     *rand.Rand
	stores  [3]*state.Dir
	paths   [3]string
	copies  [3][]byte
	began   [3]bool // it has sent something
	exports [][]byte
}

// work lets one machine work on the upload for a while, and reports whether the
// upload is finished.
func (r *relay) work(at int) bool {
	w, rnd := r.w, r.rnd
	w.srv.ClearFaults()
	ops := []faults.Op{faults.OpPut, faults.OpPut, faults.OpFinalize}
	dos := []faults.Action{
		{Effect: faults.EffectLoseReply}, {Effect: faults.EffectStall}, {Effect: faults.EffectCutRequest, Bytes: 1 + rnd.Int64N(3*q)},
		{Effect: faults.EffectStallBody, Bytes: 1 + rnd.Int64N(3*q)}, {Effect: faults.EffectStallBody, Bytes: 1 + rnd.Int64N(3*q)},
	}
	for range 3 {
		w.addFaults(faults.Fault{Match: faults.Match{Op: ops[rnd.IntN(len(ops))]}, Skip: rnd.IntN(3), Do: dos[rnd.IntN(len(dos))]})
	}
	up := w.uploader(func(o *upload.Options) {
		o.Store, o.RestartChanged = r.stores[at], rnd.IntN(3) == 0
		o.ChunkSize = []int64{q, 2 * q, 4 * q}[rnd.IntN(3)]
	})
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Duration(1+rnd.IntN(10))*time.Second)
	defer cancel()
	r.began[at] = true
	_, err := up.File(ctx, r.paths[at], spec)
	object, none := w.srv.ReadObject("bkt", "obj")
	if err == nil {
		w.wantObject("obj", r.copies[at])
		return true
	}
	whole := none != nil
	for i, c := range r.copies {
		whole = whole || r.began[i] && bytes.Equal(object, c)
	}
	if !whole {
		w.t.Fatalf("the object is no machine's copy\n%s", w.trace())
	}
	return false
}

// handOver exports the saved upload, lets a machine import that or an earlier export,
// and returns the next machine.
func (r *relay) handOver(at int) int {
	ids, err := r.stores[at].List(r.w.t.Context())
	if err != nil {
		r.w.t.Fatal(err)
	}
	for _, id := range ids {
		doc, err := r.stores[at].Load(r.w.t.Context(), id)
		if err != nil {
			r.w.t.Fatal(err)
		}
		data, err := state.Encode(doc)
		if err != nil {
			r.w.t.Fatal(err)
		}
		r.exports = append(r.exports, data)
	}
	if len(r.exports) == 0 || r.rnd.IntN(5) == 0 {
		return at
	}
	next := (at + 1 + r.rnd.IntN(2)) % len(r.stores)
	up := r.w.uploader(func(o *upload.Options) { o.Store = r.stores[next] })
	doc := decode(r.w.t, r.exports[r.rnd.IntN(len(r.exports))])
	if r.rnd.IntN(2) == 0 {
		doc.Checkpoints = nil // simulates a kill before they were saved
	}
	_, err = up.Import(r.w.t.Context(), doc, r.paths[next])
	if err != nil && !errors.Is(err, fs.ErrExist) {
		r.w.t.Fatal(err)
	}
	return next
}
