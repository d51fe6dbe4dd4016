package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/session"
	"gcsup/upload"
)

// TestTokenHasTheSessionsOptions checks that the Token that is saved after a lost
// session has the options of the new session. In an earlier version it had those of
// the call.
func TestTokenHasTheSessionsOptions(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(9 * mib)
		path := w.file(content)
		zero := int64(0)
		first := spec
		first.ContentType, first.IfGenerationMatch, first.NoClobber = "text/x-mine", &zero, true
		// First run: interrupted.
		w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Do: fakegcs.Action{Effect: fakegcs.EffectStallBody, Bytes: 2 * mib}})
		w.timeOut(path, first)
		// Second run, options not given; the session is lost, the next one is interrupted.
		w.addFaults(
			fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpQuery}, Do: fakegcs.Action{Effect: fakegcs.EffectNotFound}},
			fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Do: fakegcs.Action{Effect: fakegcs.EffectStallBody, Bytes: 2 * mib}},
		)
		res := w.timeOut(path, spec)
		token, err := w.store.Load(w.t.Context(), res.ID)
		if err != nil {
			t.Fatal(err)
		}
		if token.Spec.ContentType != "text/x-mine" || token.Spec.IfGenerationMatch == nil || !token.Spec.NoClobber {
			t.Errorf("token.Spec = %+v, want the options with which its session was started", token.Spec)
		}
		// Another writer makes the object. Third run: session lost once more.
		if _, err := w.uploader(func(o *upload.Options) { o.Store = nil }).File(w.t.Context(), writeOther(w, "other"), spec); err != nil {
			t.Fatal(err)
		}
		w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpQuery}, Do: fakegcs.Action{Effect: fakegcs.EffectNotFound}})
		_, err = w.uploader().File(w.t.Context(), path, first)
		t.Logf("third run with the first run's options: %v", err)
		w.srv.ClearFaults()
		w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpQuery}, Do: fakegcs.Action{Effect: fakegcs.EffectNotFound}})
		_, err = w.uploader().Resume(w.t.Context(), res.ID)
		t.Logf("resume: %v", err)
		w.wantObject("obj", []byte("other"))
	})
}

func writeOther(w *world, content string) string {
	p := w.dir + "/other"
	if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// TestMetagenerationInsert checks that an insert with IfMetagenerationMatch is
// not treated as idempotent: every new generation has metageneration 1.
func TestMetagenerationInsert(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		client, err := session.NewClient(w.http, "http://gcs.test")
		if err != nil {
			t.Fatal(err)
		}
		write := func(content string) {
			b := []byte(content)
			if r := client.Insert(w.t.Context(), spec, int64(len(b)), chunk.Update(0, b), bytes.NewReader(b)); r.Status != 200 {
				t.Errorf("the other writer: %+v", r)
			}
		}
		write("from before")
		time.Sleep(time.Minute)
		w.addFaults(
			fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpGet}, Do: fakegcs.Action{Effect: fakegcs.EffectGoAway}},
			fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpInsert}, Do: fakegcs.Action{Effect: fakegcs.EffectLoseReply}})
		one := int64(1)
		s := spec
		s.IfMetagenerationMatch = &one
		up := w.uploader(func(o *upload.Options) {
			o.Observer = func(e upload.Event) {
				if e.Kind == upload.Waiting {
					write("of another writer")
				}
			}
		})
		_, err = up.File(w.t.Context(), w.file(data(1000)), s)
		if !errors.Is(err, session.ErrOutcomeUnknown) {
			t.Errorf("error = %v, want ErrOutcomeUnknown\n%s", err, w.trace())
		}
		w.wantObject("obj", []byte("of another writer"))
	})
}

// TestStranger412And499 checks that one 412 or 499 that is not from the
// service does not delete the Token.
func TestStranger412And499(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, code := range []int{412, 499} {
		for _, op := range []fakegcs.Op{fakegcs.OpPut, fakegcs.OpQuery, fakegcs.OpFinalize} {
			t.Run(fmt.Sprint(code, op), func(t *testing.T) {
				inBubble(t, nil, func(w *world) {
					path := w.file(data(large))
					w.interrupt(path, 2*mib, largeChunks)
					w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: op}, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: code, Body: "<html>waf</html>"}})
					_, err := w.uploader(largeChunks).File(w.t.Context(), path, spec)
					ids, _ := w.store.List(w.t.Context())
					if err != nil && len(ids) == 0 {
						t.Errorf("committed work is lost: %v\n%s", err, w.trace())
					}
				})
			})
		}
	}
}

// TestResumableWhenCancelledWhileComparing checks that the Result of an upload
// that is canceled while it compares the source reports the saved upload.
func TestResumableWhenCancelledWhileComparing(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		path := w.file(data(40 * mib))
		w.interrupt(path, 36*mib)
		if err := os.Chmod(path, 0o640); err != nil { // change time only
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(w.t.Context())
		res, err := w.uploader(func(o *upload.Options) {
			o.Observer = func(e upload.Event) {
				if e.Kind == upload.Verifying {
					cancel()
				}
			}
		}).File(ctx, path, spec)
		w.wantSaved(1)
		if errors.Is(err, context.Canceled) && !res.Resumable {
			t.Errorf("Result.Resumable = false, and the upload is saved: %v", err)
		}
		if err == nil {
			t.Log("finished before the cancel")
		}
	})
}

// TestOldTwinIsNotOurs checks that an older object with the same bytes is not
// taken as the result of this upload.
func TestOldTwinIsNotOurs(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(9 * mib)
		path := w.file(content)
		res, err := w.uploader().File(w.t.Context(), path, spec) // the old one
		if err != nil {
			t.Fatal(err)
		}
		before := res.Object.Generation
		time.Sleep(time.Hour)
		s := spec
		s.CacheControl = "no-store"
		w.addFaults(
			// the tail never arrives, and then the session is gone
			fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpFinalize}, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503}},
			fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpQuery}, Do: fakegcs.Action{Effect: fakegcs.EffectGone}},
		)
		res, err = w.uploader().File(w.t.Context(), path, s)
		if err != nil {
			t.Fatal(err)
		}
		if res.Object.Generation == before {
			t.Errorf("done, with the object of an hour ago (generation %d), which has no Cache-Control\n%s", before, w.trace())
		}
	})
}

// TestOne400ToAQuery checks that one 400 to a status query does not end an
// upload that resumes. The next query succeeds.
func TestOne400ToAQuery(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(9 * mib)
		path := w.file(content)
		w.interrupt(path, 2*mib)
		w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpQuery}, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 400, Reason: "invalid"}})
		res, err := w.uploader().File(w.t.Context(), path, spec)
		if err != nil {
			t.Errorf("%+v %v\n%s", res, err, w.trace())
		}
	})
}

// TestCancelBelievesStrangers checks that Cancel reports success only if the service
// confirmed it. An earlier version believed a captive portal.
func TestCancelBelievesStrangers(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for _, do := range []fakegcs.Action{
		{Effect: fakegcs.EffectStatus, Status: 200, Body: "<html>please log in</html>"},
		{Effect: fakegcs.EffectStatus, Status: 404, Body: "<html>no backend</html>"},
	} {
		inBubble(t, nil, func(w *world) {
			up, id, _ := w.unfinished()
			w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpCancel}, Do: do})
			err := up.Cancel(w.t.Context(), id)
			ids, _ := w.store.List(w.t.Context())
			if last := w.srv.Requests(); err == nil && len(ids) == 0 && last[len(last)-1].Status != 499 {
				t.Errorf("%d: Cancel reports that it is cancelled, %d warnings; the session is open at the service", do.Status, w.saw(upload.Warning))
			}
		})
	}
}

// TestOne400ToAQueryUnmoved checks the same for a session without committed
// bytes.
func TestOne400ToAQueryUnmoved(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(9 * mib)
		w.addFaults(
			fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503}},
			fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpQuery}, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 400, Reason: "invalid"}},
		)
		res, err := w.uploader().File(w.t.Context(), w.file(content), spec)
		if err != nil {
			t.Errorf("%+v %v\n%s", res, err, w.trace())
		}
	})
}

// stuckStore hangs in every save except the first, until hold is closed.
type stuckStore struct {
	session.Store
	hold chan struct{}
	n    int
}

func (h *stuckStore) Save(ctx context.Context, token *session.Token) error {
	h.n++
	if h.n >= 2 {
		<-h.hold
	}
	return h.Store.Save(ctx, token)
}

// TestAbandonedUploadKeepsItsLock checks that an abandoned upload keeps its
// lock until its store answers.
func TestAbandonedUploadKeepsItsLock(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, &fakegcs.Options{Rate: 1 << 20}, func(w *world) {
		ctx, cancel := context.WithCancel(w.t.Context())
		time.AfterFunc(3*time.Second, cancel)
		hold := make(chan struct{})
		up := w.uploader(func(o *upload.Options) { o.Store = &stuckStore{Store: w.store, hold: hold} })
		path := w.file(data(12 * mib))
		res, err := up.File(ctx, path, spec)
		t.Log(res, err)
		if _, err := w.uploader().File(w.t.Context(), path, spec); !errors.Is(err, session.ErrInUse) {
			t.Error(err)
		}
		close(hold)
		time.Sleep(20 * time.Second)
		got, err := w.uploader().File(w.t.Context(), path, spec)
		t.Log(got, err)
		t.Log(res)
	})
}

// TestTestBench404 checks that a 404 of Google's test bench counts as one of
// the service. It has no "error" around code and message.
func TestTestBench404(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(1000)
		w.addFaults(
			fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpInsert}, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503}},
			fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpGet}, Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 404, ContentType: "application/json",
				Body: `{"code":404,"message":"{\"error\": {\"errors\": [{\"domain\": \"global\", \"message\": \"Blob obj does not exist.\"}]}}"}`}},
		)
		_, err := w.uploader().File(w.t.Context(), w.file(content), spec)
		if err != nil {
			t.Errorf("%v\n%s", err, w.trace())
		}
	})
	inBubble(t, nil, func(w *world) { // a session that the bench lost
		content := data(9 * mib)
		path := w.file(content)
		w.interrupt(path, 2*mib)
		w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpQuery}, Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 404, ContentType: "application/json",
			Body: `{"code":404,"message":"{\"error\": {\"errors\": [{\"domain\": \"global\", \"message\": \"Upload x does not exist.\"}]}}"}`}})
		for range 3 {
			_, err := w.uploader().File(w.t.Context(), path, spec)
			if err != nil {
				t.Errorf("%v", err)
			}
		}
	})
}

// TestResumeByFileKeepsNoClobber checks that a saved upload keeps its
// NoClobber if a later run does not set it.
func TestResumeByFileKeepsNoClobber(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(9 * mib)
		path := w.file(content)
		zero := int64(0)
		first := spec
		first.IfGenerationMatch, first.NoClobber = &zero, true
		stall := fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Do: fakegcs.Action{Effect: fakegcs.EffectStallBody, Bytes: 2 * mib}}
		w.addFaults(stall)
		w.timeOut(path, first)
		w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpQuery}, Do: fakegcs.Action{Effect: fakegcs.EffectNotFound}}, stall)
		w.timeOut(path, spec)
		if _, err := w.uploader().File(w.t.Context(), path, first); err != nil {
			t.Errorf("third run, as the first: %v", err)
		}
	})
}

// TestStranger404AtTheGate checks that the 404s of a load balancer without a
// backend close the gate.
func TestStranger404AtTheGate(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, code := range []int{503, 404} {
		inBubble(t, nil, func(w *world) {
			const n = 32
			html := fakegcs.Action{Effect: fakegcs.EffectStatus, Status: code, Body: "<html>no backend</html>"}
			w.addFaults(
				fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Times: -1, Do: html},
				fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpQuery}, Times: -1, Do: html})
			w.briefly(n, 0)
			// Without the gate there are 160 requests.
			ops := w.srv.Stats().Ops
			if total := ops[fakegcs.OpPut] + ops[fakegcs.OpQuery]; total > n+5 {
				t.Errorf("%d: %d requests after the start for %d uploads in 32 s", code, total, n)
			}
		})
	}
}
