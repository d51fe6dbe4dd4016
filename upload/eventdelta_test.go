package upload_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/upload"
)

// wantDeltas checks the deltas of the events of one upload against the offsets in the same
// events, and their sums against the Result. It returns the least CommittedDelta.
func (w *world) wantDeltas(name string, res *upload.Result) (least int64) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var sent, committed, base int64
	opened := false
	for _, e := range w.events {
		if e.Upload != w.events[len(w.events)-1].Upload {
			continue // of an earlier call
		}
		sent, committed, least = sent+e.SentDelta, committed+e.CommittedDelta, min(least, e.CommittedDelta)
		if !opened && (e.Kind == upload.Started || e.Kind == upload.Resumed) {
			opened, base = true, e.Committed
		}
		want := e.Committed - base
		if !opened {
			want = 0
		}
		if committed != want || e.SentDelta < 0 {
			w.t.Errorf("%s: %v at %d has SentDelta %d and CommittedDelta %d, whose sum is %d, want %d", name, e.Kind, e.Committed, e.SentDelta, e.CommittedDelta, committed, want)
		}
	}
	if sent != res.BytesSent {
		w.t.Errorf("%s: the sum of SentDelta is %d, want BytesSent %d", name, sent, res.BytesSent)
	}
	if res.Object != nil && res.Skipped == upload.SkipNothing && committed+base != res.Object.Size {
		w.t.Errorf("%s: the sum of CommittedDelta is %d after %d, want the size %d", name, committed, base, res.Object.Size)
	}
	return least
}

// TestEventDeltas checks the deltas of uploads of every kind, with failures in which bytes
// are sent again, and others in which committed bytes are lost.
func TestEventDeltas(t *testing.T) {
	t.Parallel()
	skipShort(t)
	cut := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 1, Times: 2, Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: q / 2}}
	lost := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 3, Do: faults.Action{Effect: faults.EffectNotFound}}
	type call func(w *world, up *upload.Uploader) (*upload.Result, error)
	file := func(size int64, spec upload.Spec) call {
		return func(w *world, up *upload.Uploader) (*upload.Result, error) {
			return up.File(w.t.Context(), w.file(data(size)), spec)
		}
	}
	zipped := spec
	zipped.Gzip = true
	for _, tt := range []struct {
		name   string
		with   func(*upload.Options)
		faults []faults.Fault
		call   call
		loses  bool // committed bytes
	}{
		{"small", resumable, nil, file(1000, spec), false},
		{"small, sent twice", largeChunks, []faults.Fault{{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}}}, file(1000, spec), false},
		{"one session", resumable, []faults.Fault{cut}, file(large, spec), false},
		{"lost session", resumable, []faults.Fault{lost}, file(large, spec), true},
		{"compressed", resumable, []faults.Fault{cut}, file(large, zipped), false},
		{"stream", func(o *upload.Options) { smallWindow(o) }, []faults.Fault{cut}, func(w *world, up *upload.Uploader) (*upload.Result, error) {
			return up.Reader(w.t.Context(), pieces(data(large)), spec)
		}, false},
		{"parts by compose", byParts, []faults.Fault{cut}, file(partsLarge, spec), false},
		{"parts by compose, one is lost", byParts, []faults.Fault{{Match: faults.Match{Op: faults.OpFinalize}, Skip: 2, Do: faults.Action{Effect: faults.EffectNotFound}}}, file(partsLarge, spec), true},
		{"parts by multipart", byMultipart, []faults.Fault{{Match: faults.Match{Op: faults.OpPartsPut}, Skip: 1, Times: 2, Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: q}}}, file(4*multipart.MinPart+1, spec), false},
		{"nothing is sent", resumable, nil, func(w *world, up *upload.Uploader) (*upload.Result, error) {
			if _, err := w.uploader(quiet).Bytes(w.t.Context(), data(1000), spec); err != nil {
				return nil, err
			}
			return withCall(up, upload.CallOptions{Skip: upload.SkipIdentical}).File(w.t.Context(), w.file(data(1000)), spec)
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, &fakegcs.Options{Faults: tt.faults, Rate: 4 * mib, Latency: time.Millisecond}, func(w *world) {
				res, err := tt.call(w, w.uploader(tt.with))
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				if least := w.wantDeltas(tt.name, res); least < 0 != tt.loses {
					t.Errorf("the least CommittedDelta is %d", least)
				}
			})
		})
	}
}

// TestEventDeltasOfAResume checks that the bytes of an earlier call do not count, even if
// they are lost.
func TestEventDeltasOfAResume(t *testing.T) {
	t.Parallel()
	for _, tt := range pausable {
		for _, lost := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, unhurried(), func(w *world) {
					path := w.file(data(tt.size))
					up := w.uploader(tt.with, func(o *upload.Options) { o.ChunkSize = q })
					id, result := w.begin(up, path, tt.spec)
					require.NoError(t, up.Pause(w.t.Context(), id))
					w.wantDeltas("first call", (<-result).res)
					if lost {
						w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectNotFound}})
					}
					res, err := up.Resume(w.t.Context(), id)
					require.NoError(t, err)
					least := w.wantDeltas("Resume", res)
					if single := tt.name == "one session"; single && least < 0 != lost {
						t.Errorf("the least CommittedDelta is %d, session lost: %t", least, lost)
					}
				})
			})
		}
	}
}

// TestEventDeltasWithoutEvents checks that the last event has the bytes of the events that
// were dropped because the Observer was slow and the upload was interrupted.
func TestEventDeltasWithoutEvents(t *testing.T) {
	t.Parallel()
	inBubble(t, unhurried(), func(w *world) {
		ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Second)
		defer cancel()
		up := withCall(w.uploader(resumable), upload.CallOptions{Observer: func(e upload.Event) {
			time.Sleep(time.Minute)
			w.mu.Lock()
			w.events = append(w.events, e)
			w.mu.Unlock()
		}})
		res, err := up.File(ctx, w.file(data(large)), spec)
		if !errors.Is(err, context.DeadlineExceeded) || res.BytesSent == 0 {
			t.Fatalf("%+v, %v", res, err)
		}
		time.Sleep(time.Hour)
		w.wantDeltas("interrupted", res)
		if n := len(w.events); n != 2 {
			t.Errorf("%d events, want Started and the last one", n)
		}
	})
}
