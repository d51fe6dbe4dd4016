package upload_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gcsup/fakegcs/faults"
	"gcsup/session"
	"gcsup/upload"
)

// TestSavedUploadSurvivesAnswersOfOthers checks that one unexpected reply of a proxy
// does not discard the committed bytes.
func TestSavedUploadSurvivesAnswersOfOthers(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, code := range []int{302, 307, 405, 407, 411, 414, 417, 421, 426, 431, 451} {
		inBubble(t, nil, func(w *world) {
			up, _, path := w.unfinished()
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Do: faults.Action{Effect: faults.EffectStatus, Status: code, Body: "<html>proxy</html>"}})
			if _, err := up.File(w.t.Context(), path, spec); err != nil {
				w.wantSaved(1)
				if _, err := up.File(w.t.Context(), path, spec); err != nil {
					t.Errorf("%d: and then: %v", code, err)
				}
			}
			w.wantObject("obj", data(large))
			if n := w.srv.Stats().Ops[faults.OpStart]; n != 1 {
				t.Errorf("%d: %d sessions were started", code, n)
			}
		})
	}
}

// TestStranger412And499 checks that one 412 or 499 that is not from the
// service does not delete the saved upload: that run or the next one finishes the session.
func TestStranger412And499(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, code := range []int{412, 499} {
		for _, op := range []faults.Op{faults.OpPut, faults.OpQuery, faults.OpFinalize} {
			t.Run(fmt.Sprint(code, op), func(t *testing.T) {
				inBubble(t, nil, func(w *world) {
					content := data(large)
					path := w.file(content)
					w.interrupt(path, 2*mib, largeChunks)
					w.addFaults(faults.Fault{Match: faults.Match{Op: op}, Do: faults.Action{Effect: faults.EffectStatus, Status: code, Body: "<html>waf</html>"}})
					if _, err := w.uploader(largeChunks).File(w.t.Context(), path, spec); err != nil {
						w.wantSaved(1)
						if _, err := w.uploader(largeChunks).File(w.t.Context(), path, spec); err != nil {
							t.Errorf("and then: %v\n%s", err, w.trace())
						}
					}
					w.wantObject("obj", content)
					w.wantSaved(0)
					if n := w.srv.Stats().Ops[faults.OpStart]; n != 1 {
						t.Errorf("%d sessions were started\n%s", n, w.trace())
					}
				})
			})
		}
	}
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
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Do: faults.Action{Effect: faults.EffectStatus, Status: 400, Reason: "invalid"}})
		res, err := w.uploader().File(w.t.Context(), path, spec)
		if err != nil {
			t.Errorf("%+v %v\n%s", res, err, w.trace())
		}
	})
}

// TestOne400ToAQueryUnmoved checks the same for a session without committed
// bytes.
func TestOne400ToAQueryUnmoved(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(9 * mib)
		w.addFaults(
			faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
			faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Do: faults.Action{Effect: faults.EffectStatus, Status: 400, Reason: "invalid"}},
		)
		res, err := w.uploader().File(w.t.Context(), w.file(content), spec)
		if err != nil {
			t.Errorf("%+v %v\n%s", res, err, w.trace())
		}
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
			faults.Fault{Match: faults.Match{Op: faults.OpInsert}, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
			faults.Fault{Match: faults.Match{Op: faults.OpGet}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 404, ContentType: "application/json",
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
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 404, ContentType: "application/json",
			Body: `{"code":404,"message":"{\"error\": {\"errors\": [{\"domain\": \"global\", \"message\": \"Upload x does not exist.\"}]}}"}`}})
		for range 3 {
			_, err := w.uploader().File(w.t.Context(), path, spec)
			if err != nil {
				t.Errorf("%v", err)
			}
		}
	})
}

// TestAnswersOfALoadBalancerKeepTheSession checks that committed bytes are not
// discarded for any number of replies that are not from the service.
func TestAnswersOfALoadBalancerKeepTheSession(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, code := range []int{400, 404, 410, 413} {
		for _, op := range []faults.Op{faults.OpPut, faults.OpQuery, faults.OpFinalize} {
			inBubble(t, nil, func(w *world) {
				content := data(large)
				path := w.file(content)
				html := faults.Action{Effect: faults.EffectStatus, Status: code, Body: "<html>no backend</html>"}
				w.addFaults(
					faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: 2 * mib}},
					faults.Fault{Match: faults.Match{Op: op}, Skip: count(op == faults.OpPut), Times: 2, Do: html},
				)
				res, err := w.uploader(largeChunks).File(w.t.Context(), path, spec)
				if err != nil || res.BytesResent > 2*mib || w.saw(upload.Restarted) != 0 {
					t.Errorf("%d to %s, twice: %+v, %v\n%s", code, op, res, err, w.trace())
				}
				w.wantObject("obj", content)
			})
		}
		inBubble(t, nil, func(w *world) {
			content := data(large)
			path := w.file(content)
			w.interrupt(path, 2*mib, largeChunks)
			w.addFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: code, Body: "<html>no backend</html>"}})
			_, err := w.uploader(largeChunks).File(w.t.Context(), path, spec)
			if !errors.Is(err, session.ErrRetriesExhausted) || !strings.Contains(err.Error(), fmt.Sprint(code)) || !strings.Contains(err.Error(), "is not from Cloud Storage") {
				t.Errorf("%d always: %v", code, err)
			}
			w.wantSaved(1)
			w.srv.ClearFaults()
			if res, err := w.uploader(largeChunks).File(w.t.Context(), path, spec); err != nil || res.ResumedFrom != 2*mib {
				t.Errorf("%d always, and then not: %+v, %v", code, res, err)
			}
		})
	}
}
