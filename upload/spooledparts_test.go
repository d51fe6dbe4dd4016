package upload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/multipart"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// TestSpoolInPartsReadAtOnce checks that the size of a stream decides, and not whether its end was read before the upload
// was saved.
func TestSpoolInPartsReadAtOnce(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(partedLarge)
		res, err := spooledStream.uploader(w, func(o *upload.Options) {
			o.Store = hook(w.store, func(context.Context) error { time.Sleep(time.Second); return nil }, "Save")
		}).Reader(w.t.Context(), pieces(content), spec)
		if err != nil || res.Parts == nil {
			t.Errorf("%v\n%s", err, w.trace())
		}
		w.wantOnlyObject(content)
	})
}

// watched is a store that calls the function over after each save of an upload that Prune would remove.
type watched struct {
	state.Store
	over func()
}

func (s *watched) Save(ctx context.Context, t *state.Upload) error {
	err := s.Store.Save(ctx, t)
	if err == nil && t.Parts != nil && t.Parts.Over {
		s.over()
	}
	return err
}

// TestSpoolInPartsRemovedByTheNext takes a copy of what a process leaves that is killed while it removes a stream. The
// saved upload is one to be removed before the first file is gone, so that the next stream in parts removes all.
func TestSpoolInPartsRemovedByTheNext(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(partedLarge)
		var next *world
		store := &watched{w.store, func() {
			if _, size := w.spooled(); size < mib {
				t.Errorf("%d bytes are in the spool", size)
			}
			next = w.snapshot()
		}}
		r := io.MultiReader(steady(content), iotest.ErrReader(errors.New("broken")))
		if _, err := tightStream.uploader(w, func(o *upload.Options) { o.Store = store }).Reader(w.t.Context(), r, spec); err == nil || next == nil {
			t.Fatal(err)
		}
		w.wantNothing()
		next.moveSpool()
		other := spec
		other.Object = "other"
		w.done(tightStream.uploader(next).Reader(w.t.Context(), steady(content), other))
		w.wantNoObject("obj")
		next.wantNothing()
	})
}

// TestSpoolStopped pauses and cancels a stream, in a session and in parts, before and after its input has ended.
func TestSpoolStopped(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(partedLarge)
	for _, whole := range []bool{false, true} {
		for i, k := range slices.Repeat([]*partedSource{inSession, spooledStream}, 2) {
			pause := i >= 2
			t.Run(fmt.Sprint(k.name, whole, pause), func(t *testing.T) {
				t.Parallel()
				inBubble(t, distant(mib), func(w *world) {
					up := k.uploader(w)
					in, out := io.Pipe()
					go func() {
						_, _ = out.Write(content)
						if whole {
							out.Close()
						}
					}()
					ended := calling(func() (*upload.Result, error) { return up.Reader(w.t.Context(), endOfPipe{in}, spec) })
					time.Sleep(3 * time.Second)
					saved, err := firstOf(up.Saved(w.t.Context()))
					if err != nil || !saved.InUse || saved.Incomplete == whole || w.multipartUploads() != i%2 {
						t.Fatalf("%+v, %v", saved, err)
					}
					stop, why := up.Cancel, session.ErrCanceled
					if pause {
						stop, why = up.Pause, upload.ErrPaused
					}
					if err := stop(w.t.Context(), saved.ID); err != nil && (whole || !errors.Is(err, state.ErrNotFound)) {
						t.Error(err)
					}
					if got := <-ended; !errors.Is(got.err, why) || got.res.Resumable != (pause && whole) {
						t.Errorf("%+v", got)
					}
					if pause && whole {
						if res, err := up.Resume(w.t.Context(), saved.ID); err != nil || !res.Resumed {
							t.Errorf("Resume: %+v, %v", res, err)
						}
						w.wantObject("obj", content)
					} else {
						w.wantNoObject("obj")
					}
					w.wantNothing()
				})
			})
		}
	}
}

// TestSpoolInPartsOutlastsAnOutage checks that a stream whose input lasts waits for the service and for the store,
// however long they are away.
func TestSpoolInPartsOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(partedLarge)
		in, end := w.stream(tightStream.uploader(w), spec)
		_, _ = in.Write(content[:partedWindow+1])
		time.Sleep(time.Second)
		w.down(faults.Action{Effect: faults.EffectStatus, Status: 503})
		_, _ = in.Write(content[partedWindow+1 : 3*multipart.MinPart])
		time.Sleep(3 * time.Hour)
		if w.saw(upload.Warning) != 2 { // one is about the small spool
			t.Errorf("%d warnings", w.saw(upload.Warning))
		}
		w.srv.ClearFaults()
		// The next failure is the first one of another outage.
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsPut}, Times: 3, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}})
		_, _ = in.Write(content[3*multipart.MinPart:])
		if res, err := end(); err != nil || res.Parts == nil {
			t.Errorf("%v, %+v", err, res)
		}
		w.wantOnlyObject(content)
	})
	inBubble(t, nil, func(w *world) {
		content := random(spooledLarge)
		store := &process{Store: w.store}
		in, end := w.stream(tightStream.uploader(w, func(o *upload.Options) { o.Store = store }), spec)
		_, _ = in.Write(content[:partedWindow+1])
		time.Sleep(time.Second)
		store.dead.Store(true)
		began := time.Now()
		if _, _ = in.Write(content[partedWindow+1:]); time.Since(began) > time.Minute {
			t.Error("the input waited for the store")
		}
		time.AfterFunc(time.Hour, func() {
			if saved, err := firstOf(w.uploader().Saved(w.t.Context())); err != nil || !saved.Incomplete {
				t.Errorf("the end was recorded before the parts were saved: %+v, %v", saved, err)
			}
			if _, size := w.spooled(); size > 6*mib { // the last part is sent after the end
				t.Errorf("%d bytes are in the spool, which the service has", size)
			}
			store.dead.Store(false)
		})
		w.done(end())
		w.wantOnlyObject(content)
	})
}

// TestSpoolInPartsEndsInAnOutage checks that the end of the input is recorded while the service is away, although it is
// not known yet whether the stream is sent in parts.
func TestSpoolInPartsEndsInAnOutage(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(partedLarge)
	for _, do := range []faults.Action{{Effect: faults.EffectStatus, Status: 503}, {Effect: faults.EffectStall}} {
		inBubble(t, nil, func(w *world) {
			w.down(do)
			ctx, interrupt := context.WithCancel(w.t.Context())
			ended := calling(func() (*upload.Result, error) { return spooledStream.uploader(w).Reader(ctx, steady(content), spec) })
			time.Sleep(10 * time.Second)
			if saved, err := firstOf(w.uploader().Saved(w.t.Context())); err != nil || saved.Incomplete {
				t.Errorf("the end of the input is not recorded: %+v, %v", saved, err)
			}
			interrupt()
			got := <-ended
			w.srv.ClearFaults()
			w.done(w.uploader().Resume(w.t.Context(), got.res.ID))
			w.wantOnlyObject(content)
		})
		// A service without an answer to the start of a multipart upload has sessions.
		inBubble(t, nil, func(w *world) {
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsStart}, Times: -1, Do: do})
			began := time.Now()
			res, err := spooledStream.uploader(w).Reader(w.t.Context(), steady(content), spec)
			if err != nil || res.Parts != nil || time.Since(began) > 10*time.Second {
				t.Errorf("%v after %v, %+v\n%s", err, time.Since(began), res, w.trace())
			}
			w.wantOnlyObject(content)
		})
	}
}

// TestSpoolInPartsUnsaved checks that bytes stay on disk after the end of the input while the store does not have their
// parts, so that another process can compare them.
func TestSpoolInPartsUnsaved(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, distant(mib), func(w *world) {
		content := data(partedLarge)
		w.addFaults(refusing(faults.OpPartsComplete, 403))
		store := &process{Store: w.store}
		in, end := w.stream(spooledStream.uploader(w, func(o *upload.Options) { o.Store = store }), spec)
		_, _ = in.Write(content)
		time.AfterFunc(time.Second, func() { store.dead.Store(true) }) // the parts take five
		res, err := end()
		if !errors.Is(err, session.ErrPermission) {
			t.Fatalf("%v\n%s", err, w.trace())
		}
		w.srv.ClearFaults()
		if again, err := w.uploader().Resume(w.t.Context(), res.ID); err != nil {
			t.Errorf("Resume: %v, %+v\n%s", err, again, w.trace())
		}
		w.wantObject("obj", content)
		w.wantNothing()
	})
}

// heldParts delays the next part on each of the four connections. Held alone, the first part to arrive could be any of them.
var heldParts = faults.Fault{Match: faults.Match{Op: faults.OpPartsPut}, Times: 4, Do: faults.Action{Effect: faults.EffectDelay, For: 5 * time.Second}}

// TestSpoolInPartsLost checks what follows if another client aborts the multipart upload, or replaces a part of it: the
// upload starts over if all bytes are on disk. Otherwise the stream is incomplete.
func TestSpoolInPartsLost(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, test := range []struct {
		sent int64 // the bytes whose parts have been stored when the other client comes
		does func(*world)
		says string // "" if the upload starts over
	}{
		{0, (*world).abortAll, ""},
		{partedLarge - 1, (*world).abortAll, "the multipart upload no longer exists"},
		{partedLarge - 1, (*world).replacePart, "the service no longer has part 1, and its bytes were removed from the disk"},
	} {
		inBubble(t, nil, func(w *world) {
			content := data(partedLarge)
			in, end := w.stream(tightStream.uploader(w), spec)
			_, _ = in.Write(content[:test.sent])
			time.Sleep(time.Second)
			w.addFaults(heldParts)
			time.AfterFunc(2*time.Second, func() { test.does(w) })
			_, _ = in.Write(content[test.sent:])
			res, err := end()
			if test.says == "" {
				if err != nil || w.saw(upload.Restarted) != 1 {
					t.Errorf("%v\n%s", err, w.trace())
				}
				w.wantOnlyObject(content)
				return
			}
			if !errors.Is(err, upload.ErrIncomplete) || !errors.Is(err, session.ErrSessionLost) || res.Resumable || !strings.Contains(fmt.Sprint(err), test.says) {
				t.Errorf("%v, %+v\n%s", err, res, w.trace())
			}
			w.wantSaved(1)
			for p, err := range w.uploader().Prune(w.t.Context(), nil) {
				if err != nil || p.Deleted != (p.State == upload.SessionGone) {
					t.Errorf("Prune: %+v, %v", p, err)
				}
			}
			if err := w.uploader().Cancel(w.t.Context(), res.ID); err != nil && !errors.Is(err, state.ErrNotFound) {
				t.Error(err)
			}
			w.wantNothing()
		})
	}
}

// TestSpoolInPartsLostUnsaved loses the multipart upload of a stream whose input lasts, while the store is away. The stream
// waits for the store, and starts over.
func TestSpoolInPartsLostUnsaved(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(partedLarge)
		store := &process{Store: w.store}
		in, end := w.stream(spooledStream.uploader(w, func(o *upload.Options) { o.Store = store }), spec)
		w.addFaults(heldParts)
		_, _ = in.Write(content[:partedWindow+1])
		time.Sleep(time.Second)
		store.dead.Store(true)
		w.abortAll()
		time.Sleep(time.Hour)
		store.dead.Store(false)
		_, _ = in.Write(content[partedWindow+1:])
		if _, err := end(); err != nil || w.saw(upload.Restarted) == 0 {
			t.Errorf("%v\n%s", err, w.trace())
		}
		w.wantOnlyObject(content)
	})
}

// replacePart replaces the first part of each multipart upload to the object, as another client would.
func (w *world) replacePart() {
	w.t.Helper()
	for _, id := range w.uploadIDs() {
		req, err := http.NewRequest("PUT", "http://gcs.test/bkt/obj?partNumber=1&uploadId="+id, strings.NewReader("other"))
		require.NoError(w.t, err)
		resp, err := w.http.Do(req)
		if err != nil || resp.StatusCode != 200 {
			w.t.Fatal(err)
		}
	}
}

// TestSpoolInPartsLostDuringASave checks that no byte is removed from the disk because of a part of a multipart upload
// that was lost meanwhile. A slow save has that part, and ends when all bytes must be sent again.
func TestSpoolInPartsLostDuringASave(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(partedLarge)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsPut, Nth: 4}, Do: faults.Action{Effect: faults.EffectDelay, For: 3 * time.Second}})
		var late atomic.Int64 // how long a save takes
		store := hook(w.store, func(context.Context) error { time.Sleep(time.Duration(late.Load())); return nil }, "Save")
		// The first three parts are held back until the end of the input is recorded.
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsPut}, Times: 3, Do: faults.Action{Effect: faults.EffectDelay, For: time.Second}})
		time.AfterFunc(500*time.Millisecond, func() { late.Store(int64(5 * time.Second)) })
		time.AfterFunc(2*time.Second, w.abortAll)
		if res, err := spooledStream.uploader(w, func(o *upload.Options) { o.Store = store }).Reader(w.t.Context(), steady(content), spec); err != nil || w.saw(upload.Restarted) != 1 {
			t.Errorf("%v, %+v\n%s", err, res, w.trace())
		}
		w.wantObject("obj", content)
		w.wantNothing()
	})
}
