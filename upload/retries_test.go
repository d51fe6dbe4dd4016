package upload_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gcsup/backoff"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/upload"
)

// unavailable is a plan in which the service is down after a number of data requests.
func unavailable(after int) []faults.Fault {
	down := faults.Action{Effect: faults.EffectStatus, Status: 503, Reason: "backendError"}
	return []faults.Fault{
		{Match: faults.Match{Op: faults.OpPut}, Skip: after, Times: -1, Do: down},
		{Match: faults.Match{Op: faults.OpQuery}, Times: -1, Do: down},
		{Match: faults.Match{Op: faults.OpInsert}, Times: -1, Do: down},
	}
}

// TestRetries checks how many failures in a row end an upload, and that a large one can be resumed.
func TestRetries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		opts    upload.Options
		call    []upload.CallOptions
		retries int
	}{
		{"none", upload.Options{}, []upload.CallOptions{{Retries: -1}}, 0},
		{"one", upload.Options{}, []upload.CallOptions{{Retries: 1}}, 1},
		{"more than the default", upload.Options{}, []upload.CallOptions{{Retries: 8}}, 8},
		{"instead of a time", upload.Options{RetryFor: 24 * time.Hour}, []upload.CallOptions{{Retries: 2}}, 2},
		{"the last one counts", upload.Options{}, []upload.CallOptions{{Retries: 2}, {Retries: 3}}, 3},
		{"a time instead", upload.Options{}, []upload.CallOptions{{Retries: 1}, {RetryFor: 20 * time.Second}}, 4}, // 1, 2, 4 and 8 seconds, and less than a second each
		{"the default", upload.Options{}, []upload.CallOptions{{}}, 5},
	} {
		for _, size := range []int64{1000, large} {
			inBubble(t, &fakegcs.Options{Faults: unavailable(1)}, func(w *world) {
				path, up := w.file(data(size)), w.uploader(resumable, func(o *upload.Options) { o.RetryFor = tt.opts.RetryFor })
				for _, c := range tt.call {
					up = withCall(up, c)
				}
				res, err := up.File(w.t.Context(), path, spec)
				e, ok := errors.AsType[*session.Error](err)
				if !ok || !errors.Is(err, session.ErrRetriesExhausted) || res.Retries != tt.retries || len(e.Waits) != tt.retries || size == large && e.Attempts != tt.retries+1 {
					t.Errorf("%s, %d bytes: %d retries, %v, want %d", tt.name, size, res.Retries, err, tt.retries)
				}
				w.wantSaved(count(size == large))
				w.srv.ClearFaults()
				if again, err := up.File(w.t.Context(), path, spec); err != nil || res.Resumable != (size == large) || again.Resumed != res.Resumable {
					t.Errorf("%s, %d bytes: then %+v, %v", tt.name, size, again, err)
				}
			})
		}
	}
}

// TestPermanent checks that the caller's decision ends an upload at the first failure for
// which it is true, that the upload stays saved, and what the function gets.
func TestPermanent(t *testing.T) {
	t.Parallel()
	for _, with := range []func(*upload.Options){resumable, byParts, byMultipart} {
		inBubble(t, &fakegcs.Options{Faults: []faults.Fault{
			{Match: faults.Match{Op: faults.OpPut}, Skip: 2, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
			{Match: faults.Match{Op: faults.OpPut}, Skip: 2, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 429, Reason: "rateLimitExceeded", Message: "too much"}},
			{Match: faults.Match{Op: faults.OpPartsPut}, Skip: 1, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 429, Reason: "SlowDown", Message: "too much"}},
		}}, func(w *world) {
			content := data(4*multipart.MinPart + 1)
			path := w.file(content)
			var mu sync.Mutex
			var seen []int
			up := withCall(w.uploader(with), upload.CallOptions{Permanent: func(e *session.Error) bool {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, e.Status)
				e.Offset = -1 // it is a copy
				return e.Status == 429 && strings.HasPrefix(e.Message, "too much")
			}})
			res, err := up.File(w.t.Context(), path, spec)
			e, ok := errors.AsType[*session.Error](err)
			if !ok || !errors.Is(err, backoff.ErrPermanent) || errors.Is(err, session.ErrRetriesExhausted) || e.Status != 429 || !res.Resumable {
				t.Errorf("%v, resumable %t, want ErrPermanent", err, res.Resumable)
			}
			if !slices.Contains(seen, 429) {
				t.Errorf("called with %v", seen)
			}
			w.srv.ClearFaults()
			if res, err := up.File(w.t.Context(), path, spec); err != nil || !res.Resumed {
				t.Errorf("then: %+v, %v", res, err)
			}
			w.wantObject("obj", content)
		})
	}
}

// TestPermanentInABatch checks that one file with a permanent failure does not end the
// others.
func TestPermanentInABatch(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{Faults: []faults.Fault{
		{Match: faults.Match{Object: "0"}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
	}}, func(w *world) {
		up := withCall(w.uploader(), upload.CallOptions{Permanent: func(e *session.Error) bool { return e.Status == 503 }})
		got := files(w.t.Context(), up, w.jobs(5, 1000), nil)
		if ended(got, backoff.ErrPermanent) != 1 || ended(got, nil) != 4 || !errors.Is(got["0"].err, backoff.ErrPermanent) {
			t.Errorf("outcomes: %+v", got)
		}
	})
}
