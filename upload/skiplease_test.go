package upload_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session/state"
	"gcsup/upload"
)

// heldStore is a store that calls held when a lock was acquired. If damaged is set, each upload that
// is loaded is damaged.
type heldStore struct {
	state.Store
	held    func()
	damaged bool
}

func (s *heldStore) Lock(ctx context.Context, id string) (func(), error) {
	unlock, err := s.Store.Lock(ctx, id)
	if err == nil {
		s.held()
	}
	return unlock, err
}

func (s *heldStore) Load(ctx context.Context, id string) (*state.Upload, error) {
	if s.damaged {
		return nil, state.ErrCorrupt
	}
	return s.Store.Load(ctx, id)
}

// TestSkipWithLease lets another process make the object after the destination was looked up, and
// before the lease is held. The rule then applies to that object.
func TestSkipWithLease(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := random(large)
	batch := func(listed bool) func(w *world, up *upload.Uploader, job upload.Job) (*upload.Result, error) {
		return func(w *world, up *upload.Uploader, job upload.Job) (*upload.Result, error) {
			job.Listed = listed
			o := files(w.t.Context(), up, []upload.Job{job}, nil)[job.Spec.Object]
			return o.Result, o.err
		}
	}
	single := func(w *world, up *upload.Uploader, job upload.Job) (*upload.Result, error) {
		return up.File(w.t.Context(), job.Path, job.Spec)
	}
	for _, tt := range []struct {
		name    string
		rule    upload.Skip
		call    func(w *world, up *upload.Uploader, job upload.Job) (*upload.Result, error)
		made    []byte
		only    bool // the upload has the precondition that there is no object
		damaged bool
		want    upload.Skip
	}{
		{name: "the same bytes", rule: upload.SkipIdentical, call: single, made: content, want: upload.SkipIdentical},
		{name: "the same bytes, precondition", rule: upload.SkipIdentical, call: single, made: content, only: true, want: upload.SkipIdentical},
		{name: "the same bytes, no time", rule: upload.SkipSameTime, call: single, made: content, want: upload.SkipIdentical},
		{name: "any bytes", rule: upload.SkipExisting, call: single, made: content[1:], only: true, want: upload.SkipExisting},
		{name: "other bytes", rule: upload.SkipIdentical, call: single, made: flipped(content, 1)},
		{name: "in a batch", rule: upload.SkipIdentical, call: batch(false), made: content, want: upload.SkipIdentical},
		{name: "listed", rule: upload.SkipIdentical, call: batch(true), made: content}, // a later look would cost a request
		{name: "listed, damaged", rule: upload.SkipIdentical, call: batch(true), made: content, damaged: true, want: upload.SkipIdentical},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				other := w.uploader(func(o *upload.Options) { o.Store = nil })
				store := &heldStore{Store: w.store, damaged: tt.damaged, held: sync.OnceFunc(func() {
					w.fails(nil)(other.Bytes(w.t.Context(), tt.made, spec))
				})}
				up := withCall(w.uploader(largeChunks, func(o *upload.Options) { o.Store = store }), upload.CallOptions{Skip: tt.rule})
				job := upload.Job{Path: w.file(content), Size: large, Spec: spec}
				if tt.only {
					job.Spec.IfGenerationMatch = new(int64)
				}
				res, err := tt.call(w, up, job)
				if err != nil || res.Skipped != tt.want || res.BytesSent > 0 != (tt.want == upload.SkipNothing) {
					t.Errorf("skipped %v, sent %d bytes, %v, want %v\n%s", res.Skipped, res.BytesSent, err, tt.want, w.trace())
				}
				w.wantSaved(0)
			})
		})
	}
}

// TestLooks counts how often an upload of a new file looks at the destination.
func TestLooks(t *testing.T) {
	t.Parallel()
	skipShort(t)
	identical := upload.CallOptions{Skip: upload.SkipIdentical}
	for _, tt := range []struct {
		name          string
		call          upload.CallOptions
		size          int64
		batch, listed bool
		only          bool // the upload has a precondition
		held          bool // another machine has the lease, and releases it
		damaged       bool
		want          int
	}{
		{name: "no rule", size: large, want: 0},
		{name: "no rule, held", size: large, held: true, want: 2},
		{name: "small", call: identical, size: 1000, want: 1},
		{name: "large", call: identical, size: large, want: 2},
		{name: "large, precondition", call: identical, size: large, only: true, want: 2},
		{name: "large, held", call: identical, size: large, held: true, want: 2},
		{name: "batch", call: identical, size: large, batch: true, want: 2},
		{name: "batch, listed", call: identical, size: large, batch: true, listed: true, want: 0},
		{name: "batch, listed, precondition", call: identical, size: large, batch: true, listed: true, only: true, want: 0},
		{name: "batch, listed, held", call: identical, size: large, batch: true, listed: true, held: true, want: 1},
		{name: "batch, listed, damaged", call: identical, size: large, batch: true, listed: true, damaged: true, want: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				job := upload.Job{Path: w.file(data(tt.size)), Size: tt.size, Spec: spec, Listed: tt.listed}
				if tt.only {
					job.Spec.IfGenerationMatch = new(int64)
				}
				up := withCall(w.machine("second", func(o *upload.Options) {
					if tt.damaged {
						o.Store = &heldStore{Store: w.store, held: func() {}, damaged: true}
					}
				}).Uploader, tt.call)
				if tt.held {
					first := w.machine("first")
					id, err := first.ID(job.Path, job.Spec)
					require.NoError(t, err)
					lease, err := first.store.Acquire(w.t.Context(), id)
					require.NoError(t, err)
					time.AfterFunc(time.Second, func() { _ = lease.Release(w.t.Context(), nil) })
				}
				var err error
				if tt.batch {
					err = files(w.t.Context(), up, []upload.Job{job}, nil)["obj"].err
				} else {
					_, err = up.File(w.t.Context(), job.Path, job.Spec)
				}
				looks := 0
				for _, r := range w.srv.Requests() {
					if r.Op == faults.OpGet && r.Object == "obj" {
						looks++
					}
				}
				if err != nil || looks != tt.want {
					t.Errorf("looked %d times, want %d, %v\n%s", looks, tt.want, err, w.trace())
				}
			})
		})
	}
}
