package upload_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/session"
	"gcsup/upload"
)

func truncate(path string, size int64) error { return os.Truncate(path, size) }

// TestRefusals checks that a permanent failure ends the upload at once with a
// sentinel error, and does not change the destination.
func TestRefusals(t *testing.T) {
	t.Parallel()
	skipShort(t)
	status := func(code int, reason string) fakegcs.Action {
		return fakegcs.Action{Effect: fakegcs.EffectStatus, Status: code, Reason: reason}
	}
	wrong := func(effect fakegcs.Effect, n int64) fakegcs.Action {
		return fakegcs.Action{Effect: effect, Bytes: n}
	}
	for _, tt := range []struct {
		name     string
		plan     fakegcs.Fault
		want     error
		requests int
		saved    int
	}{
		{"401 at start", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpStart}, Times: -1, Do: status(401, "authError")}, session.ErrCredentials, 2, 0},
		{"403 at start", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpStart}, Do: status(403, "forbidden")}, session.ErrPermission, 1, 0},
		{"daily quota", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpStart}, Do: status(403, "dailyLimitExceeded")}, session.ErrQuota, 1, 0},
		{"400 at start", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpStart}, Do: status(400, "invalid")}, session.ErrInvalid, 1, 0},
		{"404 at start", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpStart}, Do: status(404, "notFound")}, session.ErrNotFound, 1, 0},
		{"403 in the middle", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Skip: 1, Do: status(403, "forbidden")}, session.ErrPermission, 3, 1},
		{"401 in the middle, always", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Skip: 1, Times: -1, Do: status(401, "authError")}, session.ErrCredentials, 0, 1},
		{"400 in the middle", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Skip: 1, Do: status(400, "invalid")}, session.ErrProtocol, 4, 1},
		{"413 in the middle", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Skip: 1, Do: status(413, "uploadTooLarge")}, session.ErrProtocol, 4, 1},
		{"499", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Skip: 1, Do: fakegcs.Action{Effect: fakegcs.EffectCancelled}}, session.ErrCanceled, 3, 0},
		{"412 at the end", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpFinalize}, Do: status(412, "conditionNotMet")}, session.ErrPrecondition, 0, 0},
		{"410 around a 412", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpFinalize}, Do: fakegcs.Action{Effect: fakegcs.EffectGone, Status: 412}}, session.ErrPrecondition, 0, 0},
		{"corrupted on the way, every time", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Times: -1, Skip: 1, Do: wrong(fakegcs.EffectCorrupt, 100)}, session.ErrChecksum, 0, 0},
		{"tail corrupted on the way, every time", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpFinalize}, Times: -1, Do: wrong(fakegcs.EffectCorrupt, 100)}, session.ErrChecksum, 0, 0},
		{"offset going back", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Skip: 2, Do: wrong(fakegcs.EffectWrongRange, -3*q)}, session.ErrProtocol, 0, 0},
		{"offset beyond, always", fakegcs.Fault{Times: -1, Skip: 2, Do: wrong(fakegcs.EffectWrongRange, 2*q)}, session.ErrUnexpectedData, 0, 0},
		{"another object at the end", fakegcs.Fault{Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectWrongHash}}, session.ErrUnexpectedData, 0, 0},
		{"session lost four times", fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectNotFound}}, session.ErrSessionLost, 12, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, &fakegcs.Options{Faults: []fakegcs.Fault{tt.plan}}, func(w *world) {
				content := data(6*q + 5000)
				res, err := w.uploader(func(o *upload.Options) { o.ChunkSize = 2 * q }).File(w.t.Context(), w.file(content), spec)
				if !errors.Is(err, tt.want) {
					t.Errorf("error = %v, want %v\n%s", err, tt.want, w.trace())
				}
				if res == nil || res.Object != nil || res.Resumable != (tt.saved > 0) {
					t.Errorf("Result = %+v", res)
				}
				if n := len(w.srv.Requests()); tt.requests > 0 && n != tt.requests {
					t.Errorf("%d requests, want %d\n%s", n, tt.requests, w.trace())
				}
				if _, there := w.srv.Object("bkt", "obj"); there && tt.name != "another object at the end" {
					t.Error("there is an object")
				}
				w.wantSaved(tt.saved)
			})
		})
	}
}

// TestRunningHash checks that damage is detected at the first reply after it. A file
// is sent again in a new session. A stream cannot be sent again.
func TestRunningHash(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		inBubble(t, &fakegcs.Options{RunningHash: true}, func(w *world) {
			content := data(12*q + 1)
			w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Skip: 1, Do: fakegcs.Action{Effect: fakegcs.EffectCorrupt, Bytes: 1}})
			if stream {
				_, err := w.uploader(smallWindow).Reader(w.t.Context(), pieces(content), spec)
				if !errors.Is(err, session.ErrChecksum) || strings.Count(w.trace(), "put ") != 2 {
					t.Errorf("stream: error = %v, want ErrChecksum after the second part\n%s", err, w.trace())
				}
				w.wantNoObject("obj")
				return
			}
			res, err := w.uploader(func(o *upload.Options) { o.ChunkSize = 2 * q }).File(w.t.Context(), w.file(content), spec)
			if err != nil || w.saw(upload.Restarted) != 1 || res.BytesResent != 4*q {
				t.Errorf("%+v, %v, want one new session after the second part\n%s", res, err, w.trace())
			}
			w.wantObject("obj", content)
		})
	}
}

// TestRunningHashAfterRestart checks that a new session remembers no comparison of the one
// before: damage at the same offset is noticed at the first reply after it, too.
func TestRunningHashAfterRestart(t *testing.T) {
	t.Parallel()
	inBubble(t, &fakegcs.Options{RunningHash: true}, func(w *world) {
		content := data(12*q + 1)
		w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Times: 2, Do: fakegcs.Action{Effect: fakegcs.EffectCorrupt, Bytes: 1}})
		res, err := w.uploader(func(o *upload.Options) { o.ChunkSize = 2 * q }).File(w.t.Context(), w.file(content), spec)
		if err != nil || w.saw(upload.Restarted) != 2 || res.BytesResent != 4*q {
			t.Errorf("%+v, %v, want two new sessions, each after the first part\n%s", res, err, w.trace())
		}
		w.wantObject("obj", content)
	})
}

// TestRangeMD5 checks that a short prefix is compared after a failure if the
// server reports only an MD5.
func TestRangeMD5(t *testing.T) {
	t.Parallel()
	inBubbleWithMD5(t, &fakegcs.Options{}, func(w *world) {
		content := data(12*q + 1)
		w.addFaults(
			fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Do: fakegcs.Action{Effect: fakegcs.EffectCorrupt, Bytes: 1}},
			fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut, From: 2 * q}, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503}},
		)
		_, err := w.uploader(func(o *upload.Options) { o.ChunkSize = 2 * q }).File(w.t.Context(), w.file(content), spec)
		if err != nil || !strings.Contains(w.trace(), "query */* -> 200 bytes=0-524287\nstart ") {
			t.Errorf("error = %v, want a new session after the query\n%s", err, w.trace())
		}
		w.wantObject("obj", content)
	})
}

// TestDamageAtTheEndStartsOver checks that a checksum which the service refuses at
// the end causes a new session, and does not end the upload.
func TestDamageAtTheEndStartsOver(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for _, op := range []fakegcs.Op{fakegcs.OpPut, fakegcs.OpFinalize} {
		inBubble(t, &fakegcs.Options{NoMD5: true}, func(w *world) {
			const size = 9 * mib
			content := data(size)
			w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: op}, Do: fakegcs.Action{Effect: fakegcs.EffectCorrupt, Bytes: 100}})
			res, err := w.uploader().File(w.t.Context(), w.file(content), spec)
			if err != nil || res.BytesSent != 2*size || w.saw(upload.Restarted) != 1 {
				t.Errorf("%s: %+v, %v\n%s", op, res, err, w.trace())
			}
			w.wantObject("obj", content)
			w.wantSaved(0)
		})
	}
}

// TestAnswersOfALoadBalancerKeepTheSession checks that committed bytes are not
// discarded for any number of replies that are not from the service.
func TestAnswersOfALoadBalancerKeepTheSession(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, code := range []int{400, 404, 410, 413} {
		for _, op := range []fakegcs.Op{fakegcs.OpPut, fakegcs.OpQuery, fakegcs.OpFinalize} {
			inBubble(t, nil, func(w *world) {
				content := data(large)
				path := w.file(content)
				html := fakegcs.Action{Effect: fakegcs.EffectStatus, Status: code, Body: "<html>no backend</html>"}
				w.addFaults(
					fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Do: fakegcs.Action{Effect: fakegcs.EffectStatusAfter, Status: 503, Bytes: 2 * mib}},
					fakegcs.Fault{Match: fakegcs.Match{Op: op}, Skip: count(op == fakegcs.OpPut), Times: 2, Do: html},
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
			w.addFaults(fakegcs.Fault{Times: -1, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: code, Body: "<html>no backend</html>"}})
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

// TestRejectedDataKeepsTheToken checks that data which the service refuses, in a
// session that is open, ends the run and keeps the saved upload. If the next run gets
// the same refusal, it starts a new session.
func TestRejectedDataKeepsTheToken(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(9 * mib)
		path := w.file(content)
		w.interrupt(path, 2*mib)
		refuse := fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Times: 2, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 400, Reason: "invalid"}}
		w.addFaults(refuse)
		res, err := w.uploader().File(w.t.Context(), path, spec)
		if !errors.Is(err, session.ErrProtocol) || !res.Resumable {
			t.Errorf("%+v, %v", res, err)
		}
		w.wantSaved(1)
		if res, err = w.uploader().File(w.t.Context(), path, spec); err != nil || w.saw(upload.Restarted) != 1 {
			t.Errorf("the next run: %+v, %v\n%s", res, err, w.trace())
		}
		w.wantObject("obj", content)
		w.wantSaved(0)
	})
}

// TestLateCommit checks that an upload survives a server that commits more bytes of
// an interrupted request after it has replied to a query.
func TestLateCommit(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(9 * mib)
		w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpPut}, Do: fakegcs.Action{Effect: fakegcs.EffectLateCommit, Bytes: 5 * mib, For: 3e9}})
		if _, err := w.uploader().File(w.t.Context(), w.file(content), spec); err != nil {
			t.Fatalf("%v\n%s", err, w.trace())
		}
		w.wantObject("obj", content)
	})
}

// TestPreconditions checks that an upload whose precondition does not hold
// fails before its first byte is sent.
func TestPreconditions(t *testing.T) {
	t.Parallel()
	with := func(g int64) upload.Spec {
		s := spec
		s.IfGenerationMatch = &g
		return s
	}
	small, large := data(1000), data(9*mib)
	for _, tt := range []struct {
		name    string
		content []byte
		exists  bool
		want    func(generation int64) upload.Spec
		ok      bool
		trace   string
	}{
		{"none, and none is wanted", large, false, func(int64) upload.Spec { return with(0) }, true, "get  -> 404\nstart  -> 200\nput 0-9175039/9437184 -> 200 bytes=0-9175039\nfinalize 9175040-9437183/9437184 -> 200\n"},
		{"one, and none is wanted", large, true, func(int64) upload.Spec { return with(0) }, false, "get  -> 200\n"},
		{"one, and that is wanted", large, true, with, true, "get  -> 200\nstart  -> 200\nput 0-9175039/9437184 -> 200 bytes=0-9175039\nfinalize 9175040-9437183/9437184 -> 200\n"},
		{"one, and another is wanted", large, true, func(int64) upload.Spec { return with(7) }, false, "get  -> 200\n"},
		{"none, and one is wanted", large, false, func(int64) upload.Spec { return with(7) }, false, "get  -> 404\nstart  -> 200\ncancel  -> 499\n"},
		{"small: none, and none is wanted", small, false, func(int64) upload.Spec { return with(0) }, true, "get  -> 404\ninsert  -> 200\n"},
		{"small: one, and none is wanted", small, true, func(int64) upload.Spec { return with(0) }, false, "get  -> 200\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				var before string
				if tt.exists {
					if _, err := w.uploader().File(w.t.Context(), w.file([]byte("before")), spec); err != nil {
						t.Fatal(err)
					}
					before = w.trace()
				}
				o, _ := w.srv.Object("bkt", "obj")
				_, err := w.uploader().File(w.t.Context(), w.file(tt.content), tt.want(o.Generation))
				if tt.ok && err != nil || !tt.ok && !errors.Is(err, session.ErrPrecondition) {
					t.Errorf("error = %v", err)
				}
				if got := strings.TrimPrefix(w.trace(), before); got != tt.trace {
					t.Errorf("requests:\n%swant:\n%s", got, tt.trace)
				}
				switch {
				case tt.ok:
					w.wantObject("obj", tt.content)
				case tt.exists:
					w.wantObject("obj", []byte("before"))
				}
				w.wantSaved(0)
			})
		})
	}
}

// TestOwnSuccess checks that a 412 after a lost reply is a success if the
// object is the one that was sent.
func TestOwnSuccess(t *testing.T) {
	skipShort(t)
	t.Parallel()
	zero := int64(0)
	conditional := spec
	conditional.IfGenerationMatch = &zero
	for _, tt := range []struct {
		name string
		size int64
		op   fakegcs.Op
	}{{"small", 1000, fakegcs.OpInsert}, {"resumable", 9 * mib, fakegcs.OpFinalize}} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				content := data(tt.size)
				w.addFaults(
					fakegcs.Fault{Match: fakegcs.Match{Op: tt.op}, Do: fakegcs.Action{Effect: fakegcs.EffectLoseReply}},
					// The session no longer exists either: only the object is left.
					fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpQuery}, Do: fakegcs.Action{Effect: fakegcs.EffectNotFound}},
				)
				res, err := w.uploader().File(w.t.Context(), w.file(content), conditional)
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				w.wantObject("obj", content)
				if o, _ := w.srv.Object("bkt", "obj"); res.Object.Generation != o.Generation {
					t.Errorf("generation %d, want %d", res.Object.Generation, o.Generation)
				}
			})
		})
	}
	t.Run("someone else's", func(t *testing.T) {
		inBubble(t, nil, func(w *world) {
			content, theirs := data(9*mib), data(9*mib + 1)[1:]
			w.addFaults(fakegcs.Fault{Match: fakegcs.Match{Op: fakegcs.OpFinalize}, Do: fakegcs.Action{Effect: fakegcs.EffectStatus, Status: 503}})
			up := w.uploader(func(o *upload.Options) {
				observe := o.Observer
				o.Observer = func(e upload.Event) {
					observe(e)
					if e.Kind == upload.Waiting {
						other := filepath.Join(w.dir, "theirs")
						if err := os.WriteFile(other, theirs, 0o600); err != nil {
							t.Error(err)
						}
						if _, err := w.uploader(func(o *upload.Options) { o.Store = nil }).File(w.t.Context(), other, spec); err != nil {
							t.Error(err)
						}
					}
				}
			})
			_, err := up.File(w.t.Context(), w.file(content), conditional)
			if !errors.Is(err, session.ErrPrecondition) {
				t.Errorf("error = %v, want ErrPrecondition\n%s", err, w.trace())
			}
			w.wantObject("obj", theirs)
		})
	})
}

// TestBadInput checks that bad sources, names and options are refused without
// a request.
func TestBadInput(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		up := w.uploader()
		if _, err := up.File(w.t.Context(), filepath.Join(w.dir, "missing"), spec); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("missing file: %v", err)
		}
		if _, err := up.File(w.t.Context(), w.dir, spec); !errors.Is(err, chunk.ErrNotRegular) {
			t.Errorf("directory: %v", err)
		}
		for _, s := range []upload.Spec{{}, {Bucket: "bkt"}, {Bucket: "b/kt", Object: "o"}, {Bucket: "bkt", Object: strings.Repeat("x", 1025)}, {Bucket: "bkt", Object: "a\nb"}, {Bucket: "bkt", Object: "a\xffb"}} {
			if _, err := up.File(w.t.Context(), w.file(data(1)), s); !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%q: %v, want ErrInvalid", s.URL(), err)
			}
		}
		huge := w.file(nil)
		if err := truncate(huge, 5<<40+1); err != nil {
			t.Fatal(err)
		}
		if _, err := up.File(w.t.Context(), huge, spec); !errors.Is(err, session.ErrInvalid) {
			t.Errorf("5 TiB and a byte: %v, want ErrInvalid", err)
		}
		if n := len(w.srv.Requests()); n != 0 {
			t.Errorf("%d requests were made", n)
		}
		if _, err := up.File(w.t.Context(), w.file(data(1)), upload.Spec{Bucket: "nobucket", Object: "o"}); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("no bucket: %v, want ErrNotFound", err)
		}
	})
	for name, o := range map[string]upload.Options{
		"endpoint": {Endpoint: "ftp://x"}, "retry for": {RetryFor: -1}, "chunk size": {ChunkSize: -1}, "window": {Window: 5}, "stall rate": {StallRate: -1},
	} {
		if _, err := upload.New(nil, &o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
