package upload_test

import (
	"bytes"
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

// TestResume checks for File and Resume that the second call sends exactly the bytes
// that the first one did not send.
func TestResume(t *testing.T) {
	t.Parallel()
	for _, at := range []int64{0, 1, q, 5*mib + 3, 39 * mib} {
		if testing.Short() && at != 5*mib+3 {
			continue
		}
		content := data(9*mib + 77)
		if at > 9*mib {
			content = data(40*mib + 77) // several checkpoints
		}
		for _, by := range []string{"File", "Resume"} {
			t.Run(fmt.Sprint(at, " by ", by), func(t *testing.T) {
				inBubble(t, &fakegcs.Options{NoRunningHash: at%2 != 0}, func(w *world) {
					path := w.file(content)
					first := w.interrupt(path, at)
					held := chunk.Floor(at)

					up := w.uploader()
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
					w.wantObject("obj", content)
					w.wantSaved(0)
					if !res.Resumed || res.ResumedFrom != held || res.BytesSent != int64(len(content))-held || res.BytesResent != 0 {
						t.Errorf("Result = %+v, want it resumed from %d\n%s", res, held, w.trace())
					}
					got := int64(0)
					for _, r := range w.srv.Requests() {
						if r.Fault == "" && (r.Op == faults.OpPut || r.Op == faults.OpFinalize) {
							got += r.Received
						}
					}
					if got != int64(len(content))-held {
						t.Errorf("the second call sent %d bytes, want %d", got, int64(len(content))-held)
					}
					if res.BytesReread > 64*mib {
						t.Errorf("%d bytes were read again", res.BytesReread)
					}
					if w.saw(upload.Resumed) != 1 {
						t.Error("no Resumed event")
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
		if err := w.srv.DeleteObject("bkt", "obj"); err != nil {
			w.t.Fatal(err)
		}
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

// TestResumeReadsLittle checks that a resume gets the checksum of the sent bytes from
// a checkpoint.
func TestResumeReadsLittle(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, &fakegcs.Options{NoMD5: true}, func(w *world) {
		content := data(80 * mib)
		path := w.file(content)
		w.interrupt(path, 70*mib)
		res, err := w.uploader().File(w.t.Context(), path, spec)
		if err != nil {
			t.Fatal(err)
		}
		if res.BytesReread > 48*mib || res.ResumedFrom != 70*mib {
			t.Errorf("%d bytes were read again to resume from %d", res.BytesReread, res.ResumedFrom)
		}
		w.wantObject("obj", content)
	})
}

// TestVerifyingEvents checks that there are Verifying events while many bytes of a
// source are read again.
func TestVerifyingEvents(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, &fakegcs.Options{NoMD5: true}, func(w *world) {
		content := data(48 * mib)
		path := w.file(content)
		w.interrupt(path, 40*mib)
		if n := w.saw(upload.Verifying); n != 0 {
			t.Errorf("%d Verifying events before there was anything to compare", n)
		}
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := w.uploader().File(w.t.Context(), path, spec); err != nil {
			t.Fatal(err)
		}
		if w.saw(upload.Verifying) == 0 {
			t.Error("no Verifying event while the source was compared")
		}
		for _, e := range w.events {
			if e.Kind == upload.Verifying && (e.Compared <= 0 || e.Compared >= e.ToCompare || e.ToCompare >= 48*mib) {
				t.Errorf("Verifying %d of %d", e.Compared, e.ToCompare)
			}
		}
		w.wantObject("obj", content)
	})
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
				content, to, with := plain, spec, func(*upload.Options) {}
				if tt.gzip {
					content, to, with = compressed, zipped, zippedParts
				}
				path := w.file(content)
				if tt.gzip {
					w.interruptZipped(path, 3*q, with)
				} else {
					w.interrupt(path, 6*mib)
				}
				old := []byte("the object that was there before")
				if err := os.WriteFile(filepath.Join(w.dir, "old"), old, 0o600); err != nil {
					t.Fatal(err)
				}
				if _, err := w.uploader().File(w.t.Context(), filepath.Join(w.dir, "old"), spec); err != nil {
					t.Fatal(err)
				}
				if err := tt.change(path); err != nil {
					t.Fatal(err)
				}
				w.letPass(path)
				now, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				requests := len(w.srv.Requests())
				up := w.uploader(with)
				upload.SetGzipLevel(up, tt.level)
				if _, err = up.File(w.t.Context(), path, to); !errors.Is(err, tt.want) {
					t.Fatalf("error = %v, want %v\n%s", err, tt.want, w.trace())
				}
				if tt.want == nil {
					w.wantFile(now, tt.gzip)
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

// TestSourceChangesWhileSending checks that a change of the source is detected before
// the last bytes are sent.
func TestSourceChangesWhileSending(t *testing.T) {
	t.Parallel()
	skipShort(t)
	for name, change := range map[string]func(path string, content []byte) error{
		"edited": func(path string, _ []byte) error { return editQuietly(path, 100) },
		"grown":  func(path string, _ []byte) error { return appendTo(path, "x") },
		"replaced": func(path string, content []byte) error {
			return errors.Join(os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path))
		},
		"truncated": func(path string, _ []byte) error { return os.Truncate(path, 1) },
	} {
		for _, to := range []upload.Spec{spec, zipped} {
			t.Run(fmt.Sprintf("%s, compressed %v", name, to.Gzip), func(t *testing.T) {
				// With a latency the observer is called before the next request.
				inBubble(t, &fakegcs.Options{Latency: 10 * time.Millisecond}, func(w *world) {
					content, with, at := data(9*mib), func(o *upload.Options) { o.ChunkSize = 2 * mib }, 4*mib
					if to.Gzip {
						content, with, at = text(20*q), zippedParts, 4*q
					}
					path := w.file(content)
					var once bool
					up := w.uploader(with, func(o *upload.Options) {
						o.Observer = func(e upload.Event) {
							if e.Committed >= at && !once {
								once = true
								if err := change(path, content); err != nil {
									t.Error(err)
								}
							}
						}
					})
					if _, err := up.File(w.t.Context(), path, to); !errors.Is(err, session.ErrSourceChanged) {
						t.Errorf("error = %v, want ErrSourceChanged\n%s", err, w.trace())
					}
					w.wantNoObject("obj")
					if strings.Contains(w.trace(), "finalize") {
						t.Errorf("the last bytes went out\n%s", w.trace())
					}
				})
			})
		}
	}
}

// TestClockDoesNotDeleteSavedUploads checks that a saved upload which looks expired is
// resumed if the service still has it: the clock of this machine may have jumped.
func TestClockDoesNotDeleteSavedUploads(t *testing.T) {
	skipShort(t)
	t.Parallel()
	for _, expired := range []bool{false, true} {
		inBubble(t, nil, func(w *world) {
			content := data(9 * mib)
			path := w.file(content)
			first := w.interrupt(path, 6*mib)
			if expired {
				time.Sleep(8 * 24 * time.Hour) // advances the server's clock too
			} else {
				doc, err := w.store.Load(w.t.Context(), first.ID)
				if err != nil {
					t.Fatal(err)
				}
				doc.Created = doc.Created.Add(-8 * 24 * time.Hour)
				if err := w.store.Save(w.t.Context(), doc); err != nil {
					t.Fatal(err)
				}
			}
			res, err := w.uploader().File(w.t.Context(), path, spec)
			if err != nil {
				t.Fatal(err)
			}
			w.wantObject("obj", content)
			if res.Resumed != !expired || w.saw(upload.Restarted) != count(expired) {
				t.Errorf("expired %v: Resumed = %v, %d Restarted events\n%s", expired, res.Resumed, w.saw(upload.Restarted), w.trace())
			}
		})
	}
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
				if err := over.change(path); err != nil {
					t.Fatal(err)
				}
				w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpCancel}, Do: faults.Action{Effect: faults.EffectStallReply}})
				ctx, die := context.WithCancel(w.t.Context())
				p := &process{Store: w.store}
				time.AfterFunc(6*time.Second, func() { p.dead.Store(true); die() })
				if _, err := w.uploader(over.option, func(o *upload.Options) { o.Store = p }).File(ctx, path, spec); !errors.Is(err, context.Canceled) {
					t.Fatalf("error = %v", err)
				}
				time.Sleep(time.Minute) // the goroutine of the dead process holds the lock for some seconds
				if _, err := w.uploader(func(o *upload.Options) { o.RestartChanged = true }).File(w.t.Context(), path, spec); err != nil {
					t.Errorf("the next call: %v\n%s", err, w.trace())
				}
			})
		})
	}
}

// TestOptionsOfANewSession checks that the object gets the options of this call, and not those of the saved upload, if the source
// changed. TestSavedUploadHasTheSessionsOptions has a session that was lost.
func TestOptionsOfANewSession(t *testing.T) {
	skipShort(t)
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		path := w.file(data(9 * mib))
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStallBody, Bytes: 6 * mib}})
		first, second := spec, spec
		first.ContentType, second.DefaultContentType = "text/first", "text/derived"
		w.timeOut(path, first)
		if err := appendTo(path, "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.uploader(func(o *upload.Options) { o.RestartChanged = true }).File(w.t.Context(), path, second); err != nil {
			t.Fatal(err)
		}
		if o, _ := w.srv.Object("bkt", "obj"); o.ContentType != "text/derived" {
			t.Errorf("content type = %q", o.ContentType)
		}
	})
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
		if _, err := w.uploader(broken).File(w.t.Context(), path, spec); err != nil {
			t.Error(err)
		}
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

// TestFullStateDiskDoesNotEndAnUpload checks that an upload whose state was saved
// once continues with one warning, and that a later process can resume it: at an
// offset that could not be saved, if the server's checksum shows that the bytes are
// those of the source, and otherwise in a new session.
func TestFullStateDiskDoesNotEndAnUpload(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(9 * mib)
	run := func(t *testing.T, opts *fakegcs.Options, ends bool, then func(w *world, path string)) {
		inBubbleWithMD5(t, opts, func(w *world) {
			path := w.file(content)
			store := hook(w.store, failAfter(1, errFull), "Save")
			if ends {
				w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut, From: 3 * mib, To: 3*mib + 1}, Do: faults.Action{Effect: faults.EffectStall}})
			}
			ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
			defer cancel()
			_, err := w.uploader(func(o *upload.Options) { o.Store, o.ChunkSize = store, mib }).File(ctx, path, spec)
			if ends != errors.Is(err, context.DeadlineExceeded) || !ends && err != nil {
				t.Fatal(err)
			}
			if n := w.saw(upload.Warning); n != 1 {
				t.Errorf("%d warnings, want one", n)
			}
			then(w, path)
		})
	}
	t.Run("continues", func(t *testing.T) {
		run(t, nil, false, func(w *world, path string) { w.wantObject("obj", content) })
	})
	for _, tt := range []struct {
		name    string
		opts    fakegcs.Options
		resumes bool
	}{
		{"running hash", fakegcs.Options{NoMD5: true}, true},
		{"MD5", fakegcs.Options{NoRunningHash: true}, true},
		{"no checksum", fakegcs.Options{NoMD5: true, NoRunningHash: true}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, &tt.opts, true, func(w *world, path string) {
				res, err := w.uploader(func(o *upload.Options) { o.ChunkSize = mib }).File(w.t.Context(), path, spec)
				if err != nil {
					t.Fatalf("%v\n%s", err, w.trace())
				}
				w.wantObject("obj", content)
				if res.Resumed != tt.resumes || tt.resumes && res.ResumedFrom != 3*mib || w.saw(upload.Restarted) != count(!tt.resumes) {
					t.Errorf("Resumed %v from %d, %d Restarted events\n%s", res.Resumed, res.ResumedFrom, w.saw(upload.Restarted), w.trace())
				}
			})
		})
	}
	t.Run("other bytes", func(t *testing.T) {
		run(t, &fakegcs.Options{}, true, func(w *world, path string) {
			now := bytes.Clone(content)
			now[2*mib] ^= 1
			if err := editQuietly(path, 2*mib); err != nil {
				t.Fatal(err)
			}
			if _, err := w.uploader(func(o *upload.Options) { o.ChunkSize = mib }).File(w.t.Context(), path, spec); err != nil {
				t.Fatal(err)
			}
			w.wantObject("obj", now)
		})
	})
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
			if took := time.Since(start); !errors.Is(err, state.ErrInUse) || errors.Is(err, context.Canceled) || took > limit || res.BytesSent > 40*mib {
				t.Errorf("lease %v: sent %d bytes in %v: %v, want ErrInUse", lease, res.BytesSent, took, err)
			}
			w.wantSaved(1)
		})
	}
}
