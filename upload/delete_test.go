package upload_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// listed returns the objects of the bucket.
func (w *world) listed() (objects []*session.Object) {
	w.t.Helper()
	for o, err := range w.uploader().List(w.t.Context(), upload.Listing{Bucket: "bkt"}) {
		require.NoError(w.t, err)
		objects = append(objects, o)
	}
	return objects
}

// deleted returns the outcomes of the deletion of objects, by name.
func deleted(outcomes iter.Seq2[*session.Object, error]) map[string]error {
	by := map[string]error{}
	for o, err := range outcomes {
		by[o.Name] = err
	}
	return by
}

func TestList(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.put(append(names("dir/%04d", 0, 2500), "dir", "dir0")...)
		n := 0
		for o, err := range w.uploader().List(w.t.Context(), upload.Listing{Bucket: "bkt", Prefix: "dir/"}) {
			if err != nil || o.Name != fmt.Sprintf("dir/%04d", n) || o.Generation == 0 || o.Bucket != "bkt" {
				t.Fatalf("%d: %+v, %v", n, o, err)
			}
			n++
		}
		if n != 2500 || w.lists() != 3 {
			t.Errorf("%d objects, %d requests", n, w.lists())
		}
		for o, err := range w.uploader().List(w.t.Context(), upload.Listing{Bucket: "none"}) {
			if o != nil || !errors.Is(err, session.ErrNotFound) {
				t.Errorf("no bucket: %v, %v", o, err)
			}
		}
	})
}

// TestDelete checks the outcomes of deletions. The server executes each request, but many replies
// are lost or replaced.
func TestDelete(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.put("absent", "changed", "held", "last", "lost", "lost, then 412", "other", "proxy", "proxy 403", "proxy 412", "slow", "unknown")
		objects := w.listed()
		w.put("changed")
		do := func(method, path, body string) {
			reply := httptest.NewRecorder()
			w.srv.ServeHTTP(reply, httptest.NewRequest(method, "http://gcs.test"+path, strings.NewReader(body)))
			if reply.Code >= 300 {
				t.Fatal(reply.Code, reply.Body)
			}
		}
		do("PATCH", "/storage/v1/b/bkt/o/held", `{"temporaryHold":true}`)
		do("DELETE", "/storage/v1/b/bkt/o/absent", "")
		on := func(object string, times int, do faults.Action) faults.Fault {
			return faults.Fault{Match: faults.Match{Op: faults.OpDelete, Object: object}, Times: times, Do: do}
		}
		lost := faults.Action{Effect: faults.EffectLoseReply}
		w.addFaults(
			on("lost", 2, lost),
			on("slow", 2, faults.Action{Effect: faults.EffectStatus, Status: 503}),
			on("proxy", 3, faults.Action{Effect: faults.EffectStatus, Status: 404, Body: "<html>no such page</html>"}),
			on("proxy 403", 1, faults.Action{Effect: faults.EffectStatus, Status: 403, Body: "<html>log in</html>"}),
			on("proxy 412", 1, faults.Action{Effect: faults.EffectStatus, Status: 412, Body: "<html>log in</html>"}),
			// The service may answer so to the repeat of a request that deleted the object.
			on("lost, then 412", 1, lost), on("lost, then 412", 1, faults.Action{Effect: faults.EffectStatus, Status: 412, Reason: "conditionNotMet"}),
		)
		for _, o := range objects {
			if o.Name == "unknown" {
				o.Generation = 0
			}
		}
		got := deleted(w.uploader().Delete(w.t.Context(), slices.Values(objects), &upload.DeleteOptions{Jobs: 3}))
		for name, want := range map[string]error{
			"absent": nil, "changed": session.ErrPrecondition, "held": session.ErrPermission, "last": nil, "lost": nil, "lost, then 412": nil,
			"other": nil, "proxy": nil, "proxy 403": nil, "proxy 412": nil, "slow": nil, "unknown": session.ErrInvalid,
		} {
			if err, ok := got[name]; !ok || !errors.Is(err, want) || err != nil && want == nil {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
		left := []string{}
		for _, o := range w.listed() {
			left = append(left, o.Name)
		}
		if !slices.Equal(left, []string{"changed", "held", "unknown"}) {
			t.Errorf("objects %q", left)
		}
	})
}

// TestDeleteDown checks that a service that is down is not asked for each object.
func TestDeleteDown(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.put(names("%04d", 0, 500)...)
		objects := w.listed()
		w.addFaults(status(503, faults.Match{Op: faults.OpDelete}))
		counts := map[error]int{}
		for _, err := range w.uploader().Delete(w.t.Context(), slices.Values(objects), nil) {
			for _, kind := range []error{upload.ErrNotTried, session.ErrRetriesExhausted} {
				if errors.Is(err, kind) {
					counts[kind]++
					break
				}
			}
		}
		synctest.Wait()
		if requests := w.srv.Stats().Ops[faults.OpDelete]; counts[upload.ErrNotTried] < 400 || counts[upload.ErrNotTried]+counts[session.ErrRetriesExhausted] != 500 || requests > 500 {
			t.Errorf("%v with %d requests", counts, requests)
		}
	})
}

// TestDeleteInterrupted checks that an end of the context, or of the loop, ends the deletions.
func TestDeleteInterrupted(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.put(names("%04d", 0, 500)...)
		objects := w.listed()
		ctx, cancel := context.WithCancel(w.t.Context())
		defer cancel()
		n := 0
		for range w.uploader().Delete(ctx, slices.Values(objects), &upload.DeleteOptions{Jobs: 2}) {
			if n++; n == 10 {
				cancel()
			}
		}
		if n > 20 {
			t.Errorf("%d outcomes after the context ended", n)
		}
		for range w.uploader().Delete(w.t.Context(), slices.Values(objects), &upload.DeleteOptions{Jobs: 2}) {
			break
		}
		if left := len(w.listed()); left < 450 {
			t.Errorf("%d objects are left", left)
		}
	})
}
