package upload_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// timeOut uploads for a minute, which must not be enough.
func (w *world) timeOut(path string, s upload.Spec, with ...func(*upload.Options)) *upload.Result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	res, err := w.uploader(with...).File(ctx, path, s)
	if !errors.Is(err, context.DeadlineExceeded) {
		w.t.Fatalf("error = %v, want DeadlineExceeded\n%s", err, w.trace())
	}
	return res
}

// interrupt uploads until the server is stuck at offset at, and then cancels.
func (w *world) interrupt(path string, at int64, with ...func(*upload.Options)) *upload.Result {
	w.t.Helper()
	stall := faults.Fault{Match: faults.Match{Op: faults.OpPut, From: at, To: at + 1}, Do: faults.Action{Effect: faults.EffectStallBody, Bytes: at}}
	w.addFaults(stall)
	res := w.timeOut(path, spec, with...)
	if !res.Resumable || res.ID == "" {
		w.t.Fatalf("interrupted upload is not resumable: %+v", res)
	}
	w.wantSaved(1)
	w.wantNoObject("obj")
	return res
}

// TestResume checks for File and Resume, of plain and of compressed files, that the second call sends exactly the bytes that the first
// one did not send. The second call may forget the options of the first one. A saved upload that looks expired is resumed if the service
// still has it: the clock of this machine may have jumped.
func TestResume(t *testing.T) {
	t.Parallel()
	text := text(int64(testsize.Full(12, 6)) * q)
	for _, tt := range []struct {
		at     int64
		gzip   bool
		reread int64 // at most
	}{
		{0, false, 0}, {1, false, 0}, {q, false, q}, {5*mib + 3, false, 5*mib + 3}, {39 * mib, false, 8 * mib}, // several checkpoints
		{0, true, 0}, {q, true, 4 * q}, {3*q + 5, true, 12 * q},
	} {
		if testing.Short() && tt.at != 5*mib+3 {
			continue
		}
		content := data(9*mib + 77)
		switch {
		case tt.gzip:
			content = text
		case tt.at > 9*mib:
			content = data(40*mib + 77)
		}
		for _, by := range []string{"File", "Resume"} {
			t.Run(fmt.Sprint(tt.at, " by ", by, ", compressed ", tt.gzip), func(t *testing.T) {
				inBubble(t, &fakegcs.Options{NoRunningHash: tt.at%2 != 0}, func(w *world) {
					path, with := w.file(content), func(*upload.Options) {}
					var first *upload.Result
					if tt.gzip {
						with = zippedParts
						first = w.interruptZipped(path, tt.at, with)
					} else {
						first = w.interrupt(path, tt.at)
					}
					held := chunk.Floor(tt.at)
					w.plant(first.ID, first.ID, func(t *state.Upload) { t.Created = t.Created.Add(-8 * 24 * time.Hour) })

					up := w.uploader(with)
					var res *upload.Result
					var err error
					if by == "File" {
						res, err = up.File(w.t.Context(), path, spec)
					} else {
						res, err = up.Resume(w.t.Context(), first.ID)
					}
					if err != nil {
						t.Fatalf("%v\n%s", err, w.trace())
					}
					w.wantFile(content, tt.gzip)
					w.wantSaved(0)
					rest := res.Object.Size - held
					if !res.Resumed || res.ResumedFrom != held || res.BytesSent != rest || res.BytesResent != 0 || res.Size != int64(len(content)) {
						t.Errorf("Result = %+v, want it resumed from %d\n%s", res, held, w.trace())
					}
					got := int64(0)
					for _, r := range w.srv.Requests() {
						if r.Fault == "" && (r.Op == faults.OpPut || r.Op == faults.OpFinalize) {
							got += r.Received
						}
					}
					if tt.gzip {
						got -= held // the requests of the first call are complete
					}
					if got != rest {
						t.Errorf("the second call sent %d bytes, want %d", got, rest)
					}
					if n := res.BytesReread; n > tt.reread || n == 0 && tt.gzip && held > 0 {
						t.Errorf("%d bytes were read again, want at most %d", n, tt.reread)
					}
					if w.saw(upload.Resumed) != 1 || w.saw(upload.Discarded)+w.saw(upload.Restarted) != 0 {
						t.Errorf("%d Resumed events", w.saw(upload.Resumed))
					}
				})
			})
		}
	}
}

// TestResumeFinished checks that an upload is complete if the first process sent the last byte and ended before the reply. The
// object is not reported if it was deleted since, although the session still describes it. Without the permission to read the
// object, the outcome is unknown.
func TestResumeFinished(t *testing.T) {
	t.Parallel()
	remove := func(w *world) {
		require.NoError(w.t, w.srv.DeleteObject("bkt", "obj"))
	}
	for _, test := range []struct {
		name    string
		before  func(w *world)
		want    error
		restart int
	}{
		{"finished", func(*world) {}, nil, 0},
		{"deleted", remove, nil, 1},
		{"deleted, and the session is gone", func(w *world) {
			remove(w)
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpQuery}, Do: faults.Action{Effect: faults.EffectNotFound}})
		}, nil, 1},
		{"no permission to read", func(w *world) {
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpGet}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}})
		}, session.ErrOutcomeUnknown, 0},
		{"404 of the service, once", func(w *world) {
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpGet}, Do: faults.Action{Effect: faults.EffectStatus, Status: 404}})
		}, nil, 0},
		{"404 of a proxy", func(w *world) {
			w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpGet}, Times: 2, Do: faults.Action{Effect: faults.EffectStatus, Status: 404, Body: "<html>"}})
		}, nil, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				content := data(9 * mib)
				path := w.file(content)
				w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectStallReply}})
				w.timeOut(path, spec)
				test.before(w)
				res, err := w.uploader().File(w.t.Context(), path, spec)
				if !errors.Is(err, test.want) {
					t.Fatalf("%v, want %v\n%s", err, test.want, w.trace())
				}
				if w.saw(upload.Restarted) != test.restart || test.want != nil && res.Object != nil || test.restart == 0 && res.BytesSent > 0 {
					t.Errorf("%+v, %d sessions started over\n%s", res, w.saw(upload.Restarted), w.trace())
				}
				if test.name == "finished" && (res.Requests != 2 || !res.Resumed || res.ResumedFrom != 9*mib || res.Object.Generation == 0) {
					t.Errorf("Result = %+v", res)
				}
				w.wantObject("obj", content)
				w.wantSaved(count(test.want != nil))
			})
		})
	}
}

// TestSourceChanged checks that no byte of a changed file is sent, and that the
// existing object stays. A file with only another change time is compared.
func TestSourceChanged(t *testing.T) {
	skipShort(t)
	t.Parallel()
	plain, compressed := data(9*mib), text(12*q)
	touch := func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1e9, 0)) }
	longer := func(path string) error { return appendTo(path, "x") }
	replace := func(path string) error {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path+".new", plain, 0o600); err != nil {
			return err
		}
		if err := os.Chtimes(path+".new", time.Time{}, info.ModTime()); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	}
	edit := func(path string) error { return editQuietly(path, 100) }
	chmod := func(path string) error { return os.Chmod(path, 0o640) }
	for _, tt := range []struct {
		name   string
		change func(path string) error
		gzip   bool
		level  int // of the second call's compressor
		want   error
	}{
		{"another mtime", touch, false, 0, session.ErrSourceChanged},
		{"longer", longer, false, 0, session.ErrSourceChanged},
		{"shorter", func(path string) error { return os.Truncate(path, 8*mib) }, false, 0, session.ErrSourceChanged},
		{"replaced, same size and mtime", replace, false, 0, session.ErrSourceChanged},
		{"edited in the committed part, mtime put back", edit, false, 0, session.ErrSourceChanged},
		{"chmod", chmod, false, 0, nil},
		{"compressed, longer", longer, true, 0, session.ErrSourceChanged},
		{"compressed, edited, mtime put back", edit, true, 0, session.ErrSourceChanged},
		{"compressed, edited, another compressor", edit, true, 1, session.ErrSourceChanged},
		{"compressed, edited after what was sent", func(path string) error { return editQuietly(path, 12*q-1) }, true, 0, nil},
		{"compressed, chmod", chmod, true, 0, nil},
		{"compressed, chmod and another compressor", chmod, true, 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				content, with := plain, func(*upload.Options) {}
				if tt.gzip {
					content, with = compressed, zippedParts
				}
				path := w.file(content)
				if tt.gzip {
					w.interruptZipped(path, 3*q, with)
				} else {
					w.interrupt(path, 6*mib)
				}
				old := []byte("the object that was there before")
				require.NoError(t, os.WriteFile(filepath.Join(w.dir, "old"), old, 0o600))
				w.done(w.uploader().File(w.t.Context(), filepath.Join(w.dir, "old"), spec))
				require.NoError(t, tt.change(path))
				w.letPass(path)
				now, err := os.ReadFile(path)
				require.NoError(t, err)
				requests := len(w.srv.Requests())
				up := w.uploader(with)
				upload.SetGzipLevel(up, tt.level)
				if _, err = up.File(w.t.Context(), path, spec); !errors.Is(err, tt.want) { // with the options of the first call
					t.Fatalf("error = %v, want %v\n%s", err, tt.want, w.trace())
				}
				if tt.want == nil {
					w.wantFile(now, tt.gzip)
					if other := tt.level > 0; w.saw(upload.Discarded) != count(other) || strings.Contains(w.trace(), "cancel") != other {
						t.Errorf("%d sessions were discarded\n%s", w.saw(upload.Discarded), w.trace())
					}
					return
				}
				if n := len(w.srv.Requests()) - requests; n != 0 {
					t.Errorf("%d requests were made", n)
				}
				w.wantObject("obj", old)
				w.wantSaved(1)
				// A restart has the options of the call that restarts.
				res, err := w.uploader(func(o *upload.Options) { o.RestartChanged = true }).File(w.t.Context(), path, spec)
				if err != nil {
					t.Fatalf("restart: %v", err)
				}
				if res.Resumed || w.saw(upload.Discarded) != 1 {
					t.Errorf("restart: %+v", res)
				}
				w.wantObject("obj", now)
				w.wantSaved(0)
			})
		})
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// editQuietly changes one byte and restores the modification time.
func editQuietly(path string, offset int64) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	b := make([]byte, 1)
	_, err = f.ReadAt(b, offset)
	if err == nil {
		b[0] ^= 1
		_, err = f.WriteAt(b, offset)
	}
	return errors.Join(err, f.Close(), os.Chtimes(path, time.Time{}, info.ModTime()))
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestOtherOptionsKeepTheSession checks that a run without an option resumes with
// that of the first run, that a run with another value is refused, and that Restart
// discards the session, even at the service.
func TestOtherOptionsKeepTheSession(t *testing.T) {
	t.Parallel()
	skipShort(t)
	typed := func(s upload.Spec) upload.Spec { s.ContentType = "text/plain"; return s }
	derived := func(s upload.Spec) upload.Spec { s.DefaultContentType = "image/png"; return s }
	none := int64(0)
	conditional := func(s upload.Spec) upload.Spec { s.IfGenerationMatch = &none; return s }
	for _, tt := range []struct {
		name          string
		first, second func(upload.Spec) upload.Spec
		want          string // in the error; "" if it resumes
		contentType   string
	}{
		{"forgotten", typed, derived, "", "text/plain"},
		{"derived", derived, derived, "", "image/png"},
		{"the one that was derived", derived, func(s upload.Spec) upload.Spec { s.ContentType = "image/png"; return s }, "", "image/png"},
		{"another", derived, typed, `content type "image/png", not "text/plain"`, "text/plain"},
		{"a precondition", derived, conditional, `generation match "", not "0"`, "application/octet-stream"},
		{"a precondition that is forgotten", conditional, typed, `content type "application/octet-stream", not "text/plain"`, "text/plain"},
		{"compression", func(s upload.Spec) upload.Spec { return s }, func(s upload.Spec) upload.Spec { s.Gzip = true; return s }, "gzip compression", "application/octet-stream"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				content := data(9 * mib)
				path := w.file(content)
				stall := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStallBody, Bytes: 6 * mib}}
				w.addFaults(stall)
				w.timeOut(path, tt.first(spec))
				res, err := w.uploader().File(w.t.Context(), path, tt.second(spec))
				if tt.want != "" {
					if !errors.Is(err, state.ErrOptionsDiffer) || !strings.Contains(err.Error(), tt.want) {
						t.Fatalf("error = %v, want ErrOptionsDiffer with %q", err, tt.want)
					}
					w.wantSaved(1)
					res, err = w.uploader(func(o *upload.Options) { o.Restart = true }).File(w.t.Context(), path, tt.second(spec))
					if !strings.Contains(w.trace(), "cancel  -> 499\n") {
						t.Errorf("the old session is still open\n%s", w.trace())
					}
				}
				if err != nil || res.Resumed != (tt.want == "") {
					t.Errorf("%+v, %v", res, err)
				}
				w.wantFile(content, tt.second(spec).Gzip)
				w.wantSaved(0)
				if o, _ := w.srv.Object("bkt", "obj"); o.ContentType != tt.contentType {
					t.Errorf("content type = %q, want %q", o.ContentType, tt.contentType)
				}
			})
		})
	}
}

// TestCrashWhileStartingOver checks that a process that dies when it has canceled the
// old session leaves no saved upload: the next call would find the session canceled, as
// if by another client, and fail.
func TestCrashWhileStartingOver(t *testing.T) {
	t.Parallel()
	for name, over := range map[string]struct {
		change func(path string) error
		option func(*upload.Options)
	}{
		"restart":        {func(string) error { return nil }, func(o *upload.Options) { o.Restart = true }},
		"changed source": {func(path string) error { return os.WriteFile(path, data(10*mib), 0o600) }, func(o *upload.Options) { o.RestartChanged = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, nil, func(w *world) {
				path := w.file(data(9 * mib))
				w.interrupt(path, 6*mib)
				require.NoError(t, over.change(path))
				w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpCancel}, Do: faults.Action{Effect: faults.EffectStallReply}})
				ctx, die := context.WithCancel(w.t.Context())
				p := &process{Store: w.store}
				time.AfterFunc(6*time.Second, func() { p.dead.Store(true); die() })
				w.fails(context.Canceled)(w.uploader(over.option, func(o *upload.Options) { o.Store = p }).File(ctx, path, spec))
				time.Sleep(time.Minute) // the goroutine of the dead process holds the lock for some seconds
				w.done(w.uploader(func(o *upload.Options) { o.RestartChanged = true }).File(w.t.Context(), path, spec))
			})
		})
	}
}

// TestSmallFilesNeedNoStore checks that a file that is sent in one request, alone or in a batch, works with
// a store whose methods all fail, and takes no lock.
func TestSmallFilesNeedNoStore(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(1000)
		path := w.file(content)
		broken := func(o *upload.Options) {
			o.Store = hook(w.store, failAfter(0, os.ErrPermission), "Load", "Save", "Delete", "Lock")
		}
		w.done(w.uploader(broken).File(w.t.Context(), path, spec))
		w.wantObject("obj", content)
		if got := files(w.t.Context(), w.uploader(broken), w.jobs(2, 1000), nil); ended(got, nil) != 2 {
			t.Errorf("a batch: %+v", got)
		}
		if _, err := w.uploader(resumable, broken).File(w.t.Context(), w.file(data(9*mib)), spec); !errors.Is(err, os.ErrPermission) {
			t.Errorf("a large file: %v, want the store's error", err)
		}
		entries, err := os.ReadDir(w.state)
		if err != nil || len(entries) != 0 {
			t.Errorf("the state directory has %v, %v", entries, err)
		}
	})
}

// TestFullStateDiskDoesNotEndAnUpload checks that an upload whose state was saved once continues with one warning, and that a later
// process resumes it at an offset that could not be saved: the server's checksum shows that the bytes are those of the source.
func TestFullStateDiskDoesNotEndAnUpload(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(9 * mib)
	for _, ends := range []bool{false, true} {
		inBubble(t, nil, func(w *world) {
			path := w.file(content)
			full := func(o *upload.Options) { o.Store, o.ChunkSize = hook(w.store, failAfter(1, errFull), "Save"), mib }
			if ends {
				w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut, From: 3 * mib, To: 3*mib + 1}, Do: faults.Action{Effect: faults.EffectStall}})
				w.timeOut(path, spec, full)
			} else if _, err := w.uploader(full).File(w.t.Context(), path, spec); err != nil {
				t.Fatal(err)
			}
			if n := w.saw(upload.Warning); n != 1 {
				t.Errorf("%d warnings, want one", n)
			}
			if ends {
				if res, err := w.uploader().File(w.t.Context(), path, spec); err != nil || res.ResumedFrom != 3*mib {
					t.Errorf("%+v, %v\n%s", res, err, w.trace())
				}
			}
			w.wantObject("obj", content)
		})
	}
}

// TestLostLockEndsTheRequest checks that an upload whose lock another process has acquired cancels the current request,
// and does not change the saved upload: it learns this from the store while it saves, or from the lease while a
// request hangs.
func TestLostLockEndsTheRequest(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for _, lease := range []bool{false, true} {
		inBubble(t, &fakegcs.Options{Rate: 8 << 20}, func(w *world) {
			store, limit := hook(w.store, failAfter(2, fmt.Errorf("%w by process 1", state.ErrInUse)), "Save"), 5*time.Second
			if lease {
				w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStall}})
				held := newFleeting(w.store)
				time.AfterFunc(10*time.Second, func() { held.lose(errTaken) })
				store, limit = held, 11*time.Second
			}
			start := time.Now()
			res, err := w.uploader(func(o *upload.Options) { o.Store = store }).File(w.t.Context(), w.file(data(64*mib)), spec)
			if took := time.Since(start); !errors.Is(err, state.ErrInUse) || errors.Is(err, context.Canceled) || !res.Resumable || took > limit || res.BytesSent > 40*mib {
				t.Errorf("lease %v: sent %d bytes in %v: %v, want ErrInUse", lease, res.BytesSent, took, err)
			}
			w.wantSaved(1)
		})
	}
}
