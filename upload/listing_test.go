package upload_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs/faults"
	"gcsup/internal/bucket"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload"
)

// put makes objects of one byte.
func (w *world) put(names ...string) {
	w.t.Helper()
	for _, name := range names {
		reply := httptest.NewRecorder()
		w.srv.ServeHTTP(reply, httptest.NewRequest("POST", "http://gcs.test/upload/storage/v1/b/bkt/o?uploadType=media&name="+url.QueryEscape(name), strings.NewReader("x")))
		if reply.Code != http.StatusOK {
			w.t.Fatal(reply.Code, reply.Body)
		}
	}
}

func names(format string, from, to int) []string {
	var list []string
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprintf(format, i))
	}
	return list
}

func jobsFor(names []string) iter.Seq[upload.Job] {
	return func(yield func(upload.Job) bool) {
		for _, name := range names {
			if !yield(upload.Job{Spec: upload.Spec{Bucket: "bkt", Object: name}}) {
				return
			}
		}
	}
}

// lists returns how many requests for a page the server received.
func (w *world) lists() int {
	synctest.Wait() // the server counts a request when it ends, after the reply
	return int(w.srv.Stats().Ops[faults.OpList])
}

// TestLookupFails checks that a listing that fails is reported once, and that the
// jobs continue.
func TestLookupFails(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for i, test := range []struct {
		name  string
		do    faults.Action
		times int
		want  error
	}{
		{"no bucket", faults.Action{Effect: faults.EffectStatus, Status: 404}, 1, session.ErrNotFound},
		{"forbidden", faults.Action{Effect: faults.EffectStatus, Status: 403}, 1, session.ErrPermission},
		{"credentials", faults.Action{Effect: faults.EffectStatus, Status: 401}, 2, session.ErrCredentials},
		{"outage", faults.Action{Effect: faults.EffectStatus, Status: 503}, -1, session.ErrRetriesExhausted},
		{"login page", faults.Action{Effect: faults.EffectStatus, Status: 200, Body: "<html>", ContentType: "text/html"}, -1, session.ErrRetriesExhausted},
	} {
		if i%testsize.Full(1, 2) != 0 {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				all := names("%04d", 0, 1050)
				w.put(all...)
				// The second page fails.
				w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpList}, Skip: 1, Times: test.times, Do: test.do})
				n, failures, listed := 0, 0, 0
				for job, err := range w.uploader().Lookup(w.t.Context(), upload.Listing{Bucket: "bkt"}, jobsFor(all)) {
					if err != nil {
						failures++
						var e *session.Error
						if !errors.Is(err, test.want) || !errors.As(err, &e) || e.Op != bucket.OpList || n != 1000 {
							t.Errorf("after %d jobs: %v, want %v", n, err, test.want)
						}
						continue
					}
					if job.Spec.Object != all[n] || job.Listed != (n < 1000) || job.Listed != (job.Object != nil) {
						t.Fatalf("job %d: %+v", n, job)
					}
					n++
					if job.Listed {
						listed++
					}
				}
				if n != len(all) || failures != 1 || listed != 1000 {
					t.Errorf("%d jobs, %d errors, %d listed", n, failures, listed)
				}
			})
		})
	}
}

// TestLookupEnds checks that a consumer that stops, and a ctx that is done, end the request for the next page.
func TestLookupEnds(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		all := names("%04d", 0, 1100)
		w.put(all...)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpList}, Skip: 1, Times: -1, Do: faults.Action{Effect: faults.EffectStall}})
		n := 0
		for range w.uploader().Lookup(w.t.Context(), upload.Listing{Bucket: "bkt"}, jobsFor(all)) {
			if n++; n == 1000 {
				synctest.Wait() // until the page is requested
				break
			}
		}
		if w.lists() != 2 {
			t.Errorf("%d requests have ended, want 2", w.lists())
		}
		ctx, cancel := context.WithCancelCause(w.t.Context())
		start := time.Now()
		time.AfterFunc(time.Second, func() { cancel(errors.New("enough")) })
		var last error
		for job, err := range w.uploader().Lookup(ctx, upload.Listing{Bucket: "bkt"}, jobsFor(all)) {
			if last = err; err == nil && !job.Listed {
				t.Fatalf("job %s is not listed", job.Spec.Object)
			}
		}
		if !errors.Is(last, context.Canceled) || !strings.Contains(last.Error(), "enough") || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), last)
		}
	})
}

// TestLookupPassesJobs checks that jobs with an error, of another bucket or without the prefix,
// and jobs that were looked up before, are yielded unchanged in their place.
func TestLookupPassesJobs(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.put("p/a", "p/b", "p/c")
		unreadable := errors.New("unreadable")
		known := &session.Object{Generation: 7}
		var got []upload.Job
		for job, err := range w.uploader().Lookup(w.t.Context(), upload.Listing{Bucket: "bkt", Prefix: "p/"}, slices.Values([]upload.Job{
			{Spec: upload.Spec{Bucket: "bkt", Object: "p/b"}},
			{Spec: upload.Spec{Bucket: "bkt", Object: "p/a"}, Err: unreadable},
			{Spec: upload.Spec{Bucket: "abc", Object: "p/a"}},
			{Spec: upload.Spec{Bucket: "bkt", Object: "o"}},
			{Spec: upload.Spec{Bucket: "bkt", Object: "p/a"}, Listed: true, Object: known},
			{Spec: upload.Spec{Bucket: "bkt", Object: "p/c"}},
		})) {
			require.NoError(t, err)
			got = append(got, job)
		}
		if len(got) != 6 || !got[0].Listed || got[1].Err != unreadable || got[1].Listed || got[2].Listed || got[3].Listed || got[4].Object != known || got[5].Object == nil {
			t.Errorf("jobs %+v", got)
		}
	})
}
