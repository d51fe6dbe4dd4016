package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
	"gcsup/upload/outbox"
)

// TestUploads checks that complete files are uploaded and removed, whatever made them, and that the
// others stay.
func TestUploads(t *testing.T) {
	inBubble(t, fakegcs.Options{}, func(w *world) {
		w.write("before", random(10))
		w.write("sub/dir/before", random(20))
		w.write(".hidden", random(30))
		w.write(".dir/file", random(30))
		w.write("sub/.part", random(30))
		require.NoError(t, os.Symlink("before", w.path("link")))
		w.during(outbox.Options{}, func(box *outbox.Outbox) {
			w.put("now/put", random(40))
			w.write("written", random(50))
			require.NoError(w.t, os.Rename(w.path(".hidden"), w.path("renamed")))
			w.until("scanned again", func() bool { return w.inserts() == 5 })
			w.write("empty", nil)
			time.Sleep(2 * time.Minute)
			w.untilEmpty(box)
			if s := box.Status(); s.Uploaded != (outbox.Count{Files: 6, Bytes: 150}) || s.Identical != 0 || len(s.Failures) != 0 {
				w.t.Errorf("status %+v", s)
			}
		})
		for name, size := range map[string]int{"before": 10, "sub/dir/before": 20, "now/put": 40, "written": 50, "renamed": 30, "empty": 0} {
			w.wantObject(name, random(size))
		}
		w.wantFiles(".dir/file", "link", "sub/.part")
		noNames(w.t, w.dir, ".gcsup-")
		if n := w.inserts(); n != 6 {
			w.t.Errorf("%d objects were sent, want 6", n)
		}
	})
}

// TestSettles checks that a file that is being written is not uploaded.
func TestSettles(t *testing.T) {
	inBubble(t, fakegcs.Options{}, func(w *world) {
		w.during(outbox.Options{Settle: time.Minute, Rescan: 10 * time.Second}, func(box *outbox.Outbox) {
			f, err := os.Create(w.path("log"))
			require.NoError(w.t, err)
			for range 5 {
				_, err := f.WriteString("a line\n")
				require.NoError(w.t, err)
				time.Sleep(3 * time.Minute)
				if n := w.inserts(); n != 0 {
					w.t.Fatalf("a file that is open for writing was sent")
				}
			}
			require.NoError(w.t, f.Close())
			w.untilEmpty(box)
		})
		w.wantObject("log", []byte(strings.Repeat("a line\n", 5)))
	})
}

// TestComparesAfterRestart checks that a file whose object was made by a process that was killed before
// it could remove the file is not sent again.
func TestComparesAfterRestart(t *testing.T) {
	inBubble(t, fakegcs.Options{}, func(w *world) {
		w.put("same", random(100))
		w.put("other", random(200))
		for name, content := range map[string][]byte{"same": random(100), "other": random(201)} {
			w.upload(content, upload.Spec{Bucket: "bkt", Object: "in/" + name})
		}
		before := w.inserts()
		w.during(outbox.Options{}, w.untilEmpty)
		w.wantObject("same", random(100))
		w.wantObject("other", random(200))
		w.wantFiles()
		if n := w.inserts() - before; n != 1 {
			w.t.Errorf("%d objects were sent, want 1", n)
		}
	})
}

// TestKeeps checks that kept files are not sent again by the next process, unless they changed.
func TestKeeps(t *testing.T) {
	inBubble(t, fakegcs.Options{}, func(w *world) {
		keep := outbox.Options{Then: outbox.Keep, Rescan: 5 * time.Second, Settle: -1}
		for i := range 3 {
			w.put(fmt.Sprint("file", i), random(100+i))
		}
		w.during(keep, func(box *outbox.Outbox) {
			w.untilEmpty(box)
			w.write("file1", random(500))
			w.until("sent again", func() bool { return w.inserts() == 4 })
			w.untilEmpty(box)
			if s := box.Status(); s.Kept != 3 {
				w.t.Errorf("status %+v", s)
			}
		})
		seen := w.srv.Stats().Requests
		w.during(keep, func(box *outbox.Outbox) { time.Sleep(time.Minute); w.untilEmpty(box) })
		if n := w.srv.Stats().Requests - seen; n != 0 {
			w.t.Errorf("%d requests for files that were uploaded", n)
		}
		w.write("file2", random(600))
		w.during(keep, w.untilEmpty)
		w.wantObject("file1", random(500))
		w.wantObject("file2", random(600))
		w.wantFiles("file0", "file1", "file2")
	})
}

// TestMoves checks that files are moved, and replace no other file.
func TestMoves(t *testing.T) {
	inBubble(t, fakegcs.Options{}, func(w *world) {
		done := filepath.Join(filepath.Dir(w.dir), "done")
		move := outbox.Options{Then: outbox.MoveTo(done), Rescan: 5 * time.Second}
		w.during(move, func(box *outbox.Outbox) {
			for i := range 3 {
				w.put("a/b", random(10+i))
				w.until("sent", func() bool { return w.inserts() == int64(i+1) })
				w.untilEmpty(box)
			}
		})
		for name, size := range map[string]int{"a/b": 10, "a/b.1": 11, "a/b.2": 12} {
			if got, err := os.ReadFile(filepath.Join(done, name)); err != nil || !bytes.Equal(got, random(size)) {
				w.t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		}
		w.wantFiles()
		for _, bad := range []string{w.dir, w.path("below")} {
			if _, err := outbox.Open(w.dir, w.uploader(), upload.Spec{Bucket: "bkt"}, &outbox.Options{Then: outbox.MoveTo(bad)}); err == nil {
				w.t.Errorf("MoveTo(%s) is accepted", bad)
			}
		}
	})
}

// TestOrder checks that ordered files are sent one at a time by name, and that one that fails blocks the
// others.
func TestOrder(t *testing.T) {
	inBubble(t, fakegcs.Options{Faults: []faults.Fault{
		{Match: faults.Match{Object: "in/c"}, Times: 3, Do: faults.Action{Effect: faults.EffectStatus, Status: http.StatusBadRequest}},
	}}, func(w *world) {
		for _, name := range []string{"d", "b", "a", "e", "c", "c/../b0"} {
			w.write(filepath.Clean(name), random(10))
		}
		w.during(outbox.Options{Ordered: true, Settle: -1}, w.untilEmpty)
		var order []string
		for _, r := range w.srv.Requests() {
			if r.Op == faults.OpInsert && r.Status == http.StatusOK {
				order = append(order, r.Object)
			}
		}
		if want := []string{"in/a", "in/b", "in/b0", "in/c", "in/d", "in/e"}; !slices.Equal(order, want) {
			w.t.Errorf("order %q, want %q", order, want)
		}
		if n := len(w.ended("c")); n != 2 { // each repeats the request once
			w.t.Errorf("%d attempts, want 2", n)
		}
	})
}

// TestOrderStops checks that Run ends if an ordered file has no attempt left.
func TestOrderStops(t *testing.T) {
	inBubble(t, fakegcs.Options{Faults: []faults.Fault{
		{Match: faults.Match{Object: "in/b"}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: http.StatusBadRequest}},
	}}, func(w *world) {
		for _, name := range []string{"a", "b", "c"} {
			w.put(name, random(10))
		}
		box := w.open(outbox.Options{Ordered: true, Attempts: 10})
		defer box.Close()
		err := box.Run(w.t.Context())
		stopped, ok := errors.AsType[*outbox.StoppedError](err)
		if !ok || stopped.Name != "b" || stopped.Attempts != 2 { // a third answer would be the same
			w.t.Errorf("Run = %v", err)
		}
		w.wantFiles("b", "c")
		if _, exists := w.srv.Object("bkt", "in/c"); exists {
			w.t.Error("a later file was uploaded")
		}
	})
}

// TestFailed checks that a file that fails does not stop others, is moved to .failed, and can be retried.
func TestFailed(t *testing.T) {
	inBubble(t, fakegcs.Options{Faults: []faults.Fault{
		{Match: faults.Match{Object: "in/sub/bad"}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: http.StatusBadRequest}},
	}}, func(w *world) {
		w.put("sub/bad", random(10))
		w.during(outbox.Options{Attempts: 5, Rescan: 5 * time.Second}, func(box *outbox.Outbox) {
			time.Sleep(time.Hour)
			w.wantFiles("sub/bad") // the settings may be wrong for all files
			before := box.Status().Failures["invalid"]
			for i := range 10 {
				w.put(fmt.Sprint("good", i), random(20))
			}
			w.untilEmpty(box)
			if s := box.Status(); s.Failures["invalid"]-before != 2 || s.Uploaded.Files != 10 {
				w.t.Errorf("status %+v", s)
			}
			w.put("sub/bad", random(11))
			w.until("given up", func() bool { list, err := outbox.Failed(w.dir); return err == nil && len(list) == 2 })
			w.untilEmpty(box)
			w.wantFiles(".failed/sub/bad", ".failed/sub/bad.1", ".failed/sub/bad.1.reason.json", ".failed/sub/bad.reason.json")
			list, err := outbox.Failed(w.dir)
			if err != nil || len(list) != 2 || list[0].Name != "sub/bad" || list[1].Name != "sub/bad" || list[1].File != "sub/bad.1" ||
				list[0].Kind != "invalid" || list[0].Attempts != 2 || list[0].Size != 10 || list[0].Destination != "gs://bkt/in/sub/bad" || list[0].Error == "" {
				w.t.Errorf("Failed = %+v, %v", list, err)
			}
			w.srv.ClearFaults()
			if _, err := outbox.Retry(w.dir, "nothing"); !errors.Is(err, os.ErrNotExist) {
				w.t.Errorf("Retry of nothing: %v", err)
			}
			if moved, err := outbox.Retry(w.dir, "sub/bad.1"); err != nil || len(moved) != 1 {
				w.t.Errorf("Retry = %+v, %v", moved, err)
			}
			w.until("sent", func() bool { _, ok := w.srv.Object("bkt", "in/sub/bad"); return ok })
			w.untilEmpty(box)
			w.wantObject("sub/bad", random(11))
			w.wantFiles(".failed/sub/bad", ".failed/sub/bad.reason.json")
		})
	})
}

// TestOutage checks that an outage moves no file to .failed, and that everything is uploaded
// soon after it.
func TestOutage(t *testing.T) {
	inBubble(t, fakegcs.Options{}, func(w *world) {
		for i := range 40 {
			w.put(fmt.Sprint("file", i), random(100+i))
		}
		require.NoError(w.t, w.srv.AddFaults(faults.Fault{Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: http.StatusServiceUnavailable}}))
		w.during(outbox.Options{Attempts: 2}, func(box *outbox.Outbox) {
			time.Sleep(time.Hour)
			if s := box.Status(); s.Backlog.Files != 40 || s.Failures["retries_exhausted"] < 10 || len(s.Files) == 0 {
				w.t.Errorf("status %+v", s)
			}
			n := w.srv.Stats().Requests
			if n > 3600 {
				w.t.Errorf("%d requests during the outage", n)
			}
			w.srv.ClearFaults()
			ended := time.Now()
			w.untilEmpty(box)
			if took := time.Since(ended); took > 5*time.Minute {
				w.t.Errorf("the backlog took %v after the outage", took)
			}
		})
		for i := range 40 {
			w.wantObject(fmt.Sprint("file", i), random(100+i))
		}
		w.wantFiles()
	})
}

// TestChangesWhileSent checks that a file that changes while it is sent is not removed, and is sent again.
func TestChangesWhileSent(t *testing.T) {
	for _, size := range []int{100, 9 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var change func(r fakegcs.Request)
			inBubble(t, fakegcs.Options{OnRequest: func(r fakegcs.Request) { change(r) }}, func(w *world) {
				edits := 0
				change = func(r fakegcs.Request) {
					if (r.Op == faults.OpInsert || r.Op == faults.OpPut || r.Op == faults.OpGet) && edits < 3 {
						edits++
						w.write("file", random(size+edits))
					}
				}
				w.write("file", random(size))
				w.during(outbox.Options{Settle: -1}, w.untilEmpty)
				w.wantObject("file", random(size+3))
				w.wantFiles()
				if edits != 3 {
					w.t.Errorf("%d edits", edits)
				}
			})
		})
	}
}

// TestResumes checks that a large upload is saved when the outbox stops, and resumed by the next one.
func TestResumes(t *testing.T) {
	inBubble(t, fakegcs.Options{Rate: 1 << 20}, func(w *world) {
		content := random(24 << 20)
		w.write("large", content)
		opts := outbox.Options{Settle: -1}
		w.during(opts, func(box *outbox.Outbox) {
			time.Sleep(12 * time.Second)
			s := box.Status()
			if s.Uploading != 1 || len(s.Files) != 1 || s.Files[0].Name != "large" || s.Sent < 8<<20 {
				w.t.Errorf("status %+v", s)
			}
		})
		if ids, err := w.store.List(w.t.Context()); err != nil || len(ids) != 1 {
			w.t.Errorf("%d saved uploads, %v", len(ids), err)
		}
		w.during(opts, w.untilEmpty)
		w.wantObject("large", content)
		w.wantFiles()
		var resumed bool
		for _, a := range w.ended("large") {
			resumed = resumed || a.Result.Resumed && a.Result.BytesSent < 20<<20
		}
		if !resumed {
			w.t.Errorf("attempts %+v", w.ended("large"))
		}
	})
}

// TestOneProcess checks that an outbox is open only once, and that the error names the holder.
func TestOneProcess(t *testing.T) {
	inBubble(t, fakegcs.Options{}, func(w *world) {
		box := w.open(outbox.Options{})
		_, err := outbox.Open(w.dir, w.uploader(), upload.Spec{Bucket: "bkt"}, nil)
		used, ok := errors.AsType[*outbox.InUseError](err)
		if !ok || used.Held.PID != os.Getpid() || !errors.Is(err, state.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
			w.t.Errorf("second Open: %v", err)
		}
		if s, err := outbox.ReadStatus(w.dir); err != nil || s.Running == nil || s.Running.PID != os.Getpid() {
			w.t.Errorf("ReadStatus: %+v, %v", s, err)
		}
		require.NoError(w.t, box.Close())
		w.put("a", random(7))
		if s, err := outbox.ReadStatus(w.dir); err != nil || s.Running != nil || s.Backlog != (outbox.Count{Files: 1, Bytes: 7}) {
			w.t.Errorf("ReadStatus: %+v, %v", s, err)
		}
		w.open(outbox.Options{}).Close()
	})
}

// TestRecovers checks that a file that an earlier process did not finish to remove gets its name back, is
// compared, and is removed; and that it does not replace a newer file.
func TestRecovers(t *testing.T) {
	inBubble(t, fakegcs.Options{}, func(w *world) {
		w.write(".outbox/removing/sub/a", random(10))
		w.write(".outbox/removing/b", random(20))
		require.NoError(w.t, os.Chmod(w.path(".outbox"), 0o700))
		w.write("b", random(21))
		w.upload(random(10), upload.Spec{Bucket: "bkt", Object: "in/sub/a"})
		before := w.inserts()
		w.during(outbox.Options{Settle: -1}, w.untilEmpty)
		w.wantObject("sub/a", random(10))
		w.wantObject("b", random(21))
		w.wantFiles(".failed/b", ".failed/b.reason.json")
		if n := w.inserts() - before; n != 1 {
			w.t.Errorf("%d objects were sent, want 1", n)
		}
	})
}

// TestProtected checks that a file whose object a retention protects is sent twice and then moved to .failed, even if no
// other file was uploaded.
func TestProtected(t *testing.T) {
	inBubble(t, fakegcs.Options{}, func(w *world) {
		w.upload(random(10), upload.Spec{Bucket: "bkt", Object: "in/held", TemporaryHold: true})
		w.put("held", random(11))
		w.during(outbox.Options{}, func(box *outbox.Outbox) {
			w.until("given up", func() bool { list, err := outbox.Failed(w.dir); return err == nil && len(list) == 1 })
			w.untilEmpty(box)
		})
		w.wantFiles(".failed/held", ".failed/held.reason.json")
		if n := len(w.ended("held")); n != 2 {
			w.t.Errorf("%d attempts, want 2", n)
		}
	})
}

// TestUnreadable checks that Run ends if the credentials do not permit to read objects, and that no file is sent again
// meanwhile, by it or by the next process, or moved.
func TestUnreadable(t *testing.T) {
	inBubble(t, fakegcs.Options{Faults: []faults.Fault{
		{Match: faults.Match{Op: faults.OpGet}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: http.StatusForbidden}},
	}}, func(w *world) {
		for range 2 {
			box := w.open(outbox.Options{Ready: func() { w.put("file", random(10)) }, Rescan: time.Second})
			err := box.Run(w.t.Context())
			if _, ok := errors.AsType[*outbox.UnreadableError](err); !ok || !errors.Is(err, session.ErrPermission) {
				w.t.Errorf("Run = %v", err)
			}
			box.Close()
		}
		w.wantFiles("file")
		if n := w.inserts(); n != 1 {
			w.t.Errorf("%d objects were sent, want 1", n)
		}
	})
}

// fullStore is a store whose disk is full.
type fullStore struct{ state.Store }

func (fullStore) Save(context.Context, *state.Upload) error {
	return &os.PathError{Op: "write", Path: "state", Err: syscall.ENOSPC}
}

// TestFullStore checks that a large file is uploaded and removed although its upload cannot be saved: that frees space.
func TestFullStore(t *testing.T) {
	inBubble(t, fakegcs.Options{}, func(w *world) {
		w.saved = fullStore{w.store}
		content := random(9 << 20)
		w.write("large", content)
		w.put("small", random(10))
		w.during(outbox.Options{Settle: -1, Ordered: true}, func(box *outbox.Outbox) {
			w.untilEmpty(box)
			if s := box.Status(); len(s.Failures) != 0 || s.Uploaded.Files != 2 {
				w.t.Errorf("status %+v", s)
			}
		})
		w.wantObject("large", content)
		w.wantFiles()
		if list := w.ended("large"); len(list) != 2 || !list[0].Unsaved || list[1].Unsaved {
			w.t.Errorf("attempts %+v", list)
		}
	})
}
