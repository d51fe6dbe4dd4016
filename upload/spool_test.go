package upload_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/session/state"
	"gcsup/upload"
)

// spooling keeps the streams of a world in a spool of at most limit bytes.
func (w *world) spooling(limit int64) func(*upload.Options) {
	require.NoError(w.t, os.MkdirAll(w.spoolDir(), 0o700))
	return func(o *upload.Options) { o.Spool = &upload.Spool{Dir: w.spoolDir(), Limit: limit} }
}

func (w *world) spoolDir() string { return filepath.Join(w.state, "..", "spool") }

// spooledBytes returns the files of all spools, and their size.
func (w *world) spooled() (names []string, size int64) {
	_ = filepath.WalkDir(w.spoolDir(), func(path string, e os.DirEntry, err error) error {
		if err != nil || path == w.spoolDir() {
			return nil
		}
		names = append(names, path)
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			if strings.HasSuffix(path, ".bytes") {
				size += info.Size()
			}
		}
		return nil
	})
	return names, size
}

// wantNoSpool fails if any file is left in the spool.
func (w *world) wantNoSpool() {
	w.t.Helper()
	if names, _ := w.spooled(); len(names) > 0 {
		w.t.Errorf("left in the spool: %q", names)
	}
}

// snapshot returns a world with copies of the saved uploads and the spool, as another process finds them
// after this one was killed.
func (w *world) snapshot() *world {
	w.t.Helper()
	synctest.Wait()
	dir := testsize.MemDir(w.t)
	for _, name := range []string{"state", "spool"} {
		require.NoError(w.t, os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(w.state, "..", name))))
	}
	_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, _ error) error {
		mode := os.FileMode(0o600)
		if e.IsDir() {
			mode = 0o700
		}
		return os.Chmod(path, mode)
	})
	own := &world{t: w.t, srv: w.srv, http: w.http, dir: w.dir, state: filepath.Join(dir, "state")}
	var err error
	if own.store, err = state.OpenDir(own.state); err != nil {
		w.t.Fatal(err)
	}
	return own
}

// moveSpool makes the saved uploads of a snapshot use its copy of the spool.
func (w *world) moveSpool() (id string) {
	w.t.Helper()
	ids, err := w.store.List(w.t.Context())
	if err != nil || len(ids) != 1 {
		w.t.Fatalf("saved uploads: %v, %v", ids, err)
	}
	doc, err := w.store.Load(w.t.Context(), ids[0])
	require.NoError(w.t, err)
	doc.Spool.Dir = w.spoolDir()
	require.NoError(w.t, w.store.Save(w.t.Context(), doc))
	return ids[0]
}

// stream starts a call of Reader, whose source is written to in. end closes in, and returns the outcome.
func (w *world) stream(up *upload.Uploader, s upload.Spec) (in *io.PipeWriter, end func() (*upload.Result, error)) {
	r, in := io.Pipe()
	ended := make(chan struct{})
	var res *upload.Result
	var err error
	go func() {
		defer close(ended)
		res, err = up.Reader(w.t.Context(), r, s)
	}()
	return in, func() (*upload.Result, error) {
		in.Close()
		<-ended
		return res, err
	}
}

// TestSpoolOfAWriter checks that a Writer uses the spool, and that Abort leaves nothing.
func TestSpoolOfAWriter(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(5 * mib)
		up := w.uploader(w.spooling(0))
		for _, abort := range []bool{true, false} {
			writer := up.NewWriter(w.t.Context(), spec)
			w.done(writer.ReadFrom(must(os.Open(w.file(content)))))
			synctest.Wait()
			if names, size := w.spooled(); size != 5*mib {
				t.Errorf("%d bytes are in the spool: %q", size, names)
			}
			if abort {
				writer.Abort()
				w.wantNoObject("obj")
			} else if err := writer.Close(); err != nil {
				t.Fatal(err)
			}
			w.wantNothing()
		}
		w.wantObject("obj", content)
	})
}

func must(f *os.File, err error) *os.File {
	if err != nil {
		panic(err)
	}
	return f
}

// TestSpoolResume checks that a stream whose input ended is finished by another process, whatever
// the first one had sent.
func TestSpoolResume(t *testing.T) {
	t.Parallel()
	content := data(13*mib + 5)
	unanswered := refusing(faults.OpQuery, 503)
	for name, fault := range map[string]faults.Fault{
		"no session":       {Match: faults.Match{Op: faults.OpStart}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
		"nothing sent":     {Match: faults.Match{Op: faults.OpPut}, Times: -1, Do: faults.Action{Effect: faults.EffectReset}},
		"a cut request":    {Match: faults.Match{Op: faults.OpPut}, Times: -1, Do: faults.Action{Effect: faults.EffectCutRequest, Bytes: 9*mib + 77}},
		"all but the end":  {Match: faults.Match{Op: faults.OpFinalize}, Times: -1, Do: faults.Action{Effect: faults.EffectReset}},
		"the last reply":   {Match: faults.Match{Op: faults.OpFinalize}, Times: -1, Do: faults.Action{Effect: faults.EffectLoseReply}},
		"an unaligned end": {Match: faults.Match{Op: faults.OpPut}, Times: -1, Do: faults.Action{Effect: faults.EffectShortCommit, Bytes: 5*mib + 3}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, &fakegcs.Options{Faults: []faults.Fault{fault, unanswered}}, func(w *world) {
				ended := make(chan struct{})
				ctx, kill := context.WithCancel(w.t.Context())
				go func() {
					defer close(ended)
					_, _ = w.uploader(w.spooling(0)).Reader(ctx, pieces(content), spec)
				}()
				time.Sleep(10 * time.Second)
				w.srv.ClearFaults()
				next := w.snapshot()
				id := next.moveSpool()
				saved, serr := firstOf(next.uploader().Saved(w.t.Context()))
				if serr != nil || saved.Incomplete || saved.Size != int64(len(content)) || saved.Source() != "-" {
					t.Errorf("saved: %+v, %v", saved, serr)
				}
				resumed, rerr := next.uploader().Resume(w.t.Context(), id)
				if rerr != nil {
					t.Fatalf("resume: %v\n%s", rerr, w.trace())
				}
				if resumed.BytesSent > int64(len(content)) {
					t.Errorf("%d bytes were sent again", resumed.BytesSent)
				}
				next.wantNothing()
				w.wantObject("obj", content)
				kill()
				<-ended
			})
		})
	}
}

func firstOf[S any](all func(func(S, error) bool)) (s S, err error) {
	for s, err = range all {
		return s, err
	}
	return s, errors.New("none is saved")
}

// TestSpoolWithoutEnd checks that a stream whose process was killed before its input ended is never
// published, and that Prune and Cancel remove both halves of it.
func TestSpoolWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, remove := range []string{"prune", "cancel"} {
		t.Run(remove, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				ctx, kill := context.WithCancel(w.t.Context())
				r := newBlockingReader(data(20*mib + 7))
				ended := calling(func() (*upload.Result, error) { return w.uploader(w.spooling(0)).Reader(ctx, r, spec) })
				time.Sleep(time.Second)
				next := w.snapshot()
				id := next.moveSpool()
				up := next.uploader(next.spooling(0))
				_, err := up.Resume(w.t.Context(), id)
				if !errors.Is(err, upload.ErrIncomplete) {
					t.Errorf("resume: %v, want ErrIncomplete", err)
				}
				next.wantSaved(1)
				if saved, err := firstOf(up.Saved(w.t.Context())); err != nil || !saved.Incomplete || saved.Size != -1 {
					t.Errorf("saved: %+v, %v", saved, err)
				}
				if remove == "cancel" {
					err = up.Cancel(w.t.Context(), id)
				} else {
					var p upload.Pruned
					if p, err = firstOf(up.Prune(w.t.Context(), nil)); !p.Deleted {
						t.Errorf("pruned: %+v", p)
					}
				}
				if err != nil {
					t.Error(err)
				}
				next.wantNothing()
				kill()
				close(r.closed)
				if got := <-ended; !errors.Is(got.err, context.Canceled) {
					t.Errorf("the interrupted call: %v", got.err)
				}
				w.wantNoObject("obj")
				w.wantNothing()
			})
		})
	}
}

// TestSpoolOutlastsAnOutage checks that an upload does not stop while its input lasts, even if its
// retries are exhausted, and that it stays resumable after the end of the input.
func TestSpoolOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(6 * mib)
		in, end := w.stream(w.uploader(w.spooling(0)), spec)
		w.down(faults.Action{Effect: faults.EffectStatus, Status: 503})
		in.Write(content[:mib])
		time.Sleep(3 * time.Hour)
		if w.saw(upload.Warning) != 1 {
			t.Errorf("%d warnings", w.saw(upload.Warning))
		}
		in.Write(content[mib:])
		res, err := end()
		if !errors.Is(err, session.ErrRetriesExhausted) || !res.Resumable {
			t.Fatalf("error = %v, %+v", err, res)
		}
		w.srv.ClearFaults()
		w.done(w.uploader().Resume(w.t.Context(), res.ID))
		w.wantObject("obj", content)
		w.wantNoSpool()
	})
}

// TestSpoolLimit checks that the input waits while the spool is full, and that the files stay below
// the limit.
func TestSpoolLimit(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(23 * mib)
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: 3, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}})
		ended := calling(func() (*upload.Result, error) {
			return w.uploader(w.spooling(4*mib)).Reader(w.t.Context(), pieces(content), spec)
		})
		time.Sleep(time.Second)
		if _, size := w.spooled(); size != 4*mib {
			t.Errorf("%d bytes in the spool, want the limit", size)
		}
		if got := <-ended; got.err != nil {
			t.Fatal(got.err)
		}
		if waits, continues := w.saw(upload.InputWaits), w.saw(upload.InputContinues); waits == 0 || waits != continues {
			t.Errorf("%d waits, %d continued", waits, continues)
		}
		w.wantObject("obj", content)
	})
}

// TestSpoolLostSession checks that a session that is lost is replaced while all bytes are held. Later the
// upload fails, and what is left stays until Prune removes it.
func TestSpoolLostSession(t *testing.T) {
	t.Parallel()
	content := data(30 * mib)
	for _, tt := range []struct {
		name string
		from int64
		want error
	}{{"early", 0, nil}, {"late", 20 * mib, session.ErrSessionLost}} {
		t.Run(tt.name, func(t *testing.T) {
			gone := faults.Fault{Match: faults.Match{Op: faults.OpPut, From: tt.from}, Do: faults.Action{Effect: faults.EffectGone}}
			inBubble(t, &fakegcs.Options{Faults: []faults.Fault{gone}}, func(w *world) {
				up := w.uploader(w.spooling(0), func(o *upload.Options) { o.ChunkSize = 4 * mib })
				res, err := up.Reader(w.t.Context(), pieces(content), spec)
				if !errors.Is(err, tt.want) {
					t.Fatalf("error = %v, want %v", err, tt.want)
				}
				if err == nil {
					w.wantObject("obj", content)
					w.wantNoSpool()
					return
				}
				w.wantNoObject("obj")
				w.wantSaved(1)
				if _, again := up.Resume(w.t.Context(), res.ID); !errors.Is(again, session.ErrSessionLost) || !strings.Contains(again.Error(), "are kept in") {
					t.Errorf("resumed: %v", again)
				}
				if p, err := firstOf(up.Prune(w.t.Context(), nil)); err != nil || !p.Deleted {
					t.Errorf("pruned: %+v, %v", p, err)
				}
				w.wantNothing()
			})
		})
	}
}

// endOfPipe is a pipe whose read deadline interrupts it.
type endOfPipe struct{ *io.PipeReader }

func (p endOfPipe) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		_ = p.CloseWithError(io.ErrClosedPipe)
	}
	return nil
}

// TestSpoolInUse checks that one process at a time works on a stream.
func TestSpoolInUse(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		in, end := w.stream(w.uploader(w.spooling(0)), spec)
		in.Write(data(mib))
		synctest.Wait()
		next := w.snapshot() // another state directory, the same spool
		ids, err := next.store.List(w.t.Context())
		if err != nil || len(ids) != 1 {
			t.Fatal(ids, err)
		}
		held := new(state.HeldError)
		for name, f := range map[string]func(*upload.Uploader) error{
			"resume": func(up *upload.Uploader) error { _, err := up.Resume(w.t.Context(), ids[0]); return err },
			"cancel": func(up *upload.Uploader) error { return up.Cancel(w.t.Context(), ids[0]) },
		} {
			if err := f(next.uploader()); !errors.As(err, &held) || held.PID != os.Getpid() {
				t.Errorf("%s: %v, want an error that names the process", name, err)
			}
		}
		w.done(end())
	})
}

// TestSpoolSendsLongRequests checks that a request carries all that was read during the one before. Each
// costs a round trip.
func TestSpoolSendsLongRequests(t *testing.T) {
	t.Parallel()
	skipShort(t)
	puts := func(with ...func(*world) func(*upload.Options)) (n int) {
		inBubble(t, &fakegcs.Options{NoMD5: true, Latency: 20 * time.Millisecond}, func(w *world) {
			var opts []func(*upload.Options)
			for _, f := range with {
				opts = append(opts, f(w))
			}
			w.done(w.uploader(opts...).Reader(w.t.Context(), io.LimitReader(zeros{}, 80*mib), spec))
			n = strings.Count(w.trace(), "put ")
		})
		return n
	}
	spooled, memory := puts(func(w *world) func(*upload.Options) { return w.spooling(0) }), puts()
	if spooled > 2 || memory < 4 {
		t.Errorf("%d requests with a spool, want at most 2; %d without", spooled, memory)
	}
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestSpoolThatCannotBeWritten checks that an upload fails, and does not hang, if its spool cannot be written
// before the type of the content is known.
func TestSpoolThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		r, in := io.Pipe()
		ended := calling(func() (*upload.Result, error) { return w.uploader(w.spooling(0)).Reader(w.t.Context(), r, spec) })
		synctest.Wait()
		entries, err := os.ReadDir(w.spoolDir())
		if err != nil || len(entries) != 2 {
			t.Errorf("%v, %v", entries, err)
		}
		for _, e := range entries {
			if e.IsDir() {
				_ = os.Remove(filepath.Join(w.spoolDir(), e.Name()))
			}
		}
		in.Write([]byte("short"))
		if got := <-ended; !errors.Is(got.err, fs.ErrNotExist) {
			t.Errorf("error = %v", got.err)
		}
		w.wantSaved(0)
		w.wantNoObject("obj")
	})
}

// TestSpoolIsSavedBeforeItsEnd checks that the end of a stream is not recorded before its upload is saved: a
// process that is killed between them would leave a complete stream that no list shows.
func TestSpoolIsSavedBeforeItsEnd(t *testing.T) {
	t.Parallel()
	for _, failed := range []error{nil, errors.New("the store failed")} {
		inBubble(t, nil, func(w *world) {
			content := data(1000)
			up := w.uploader(w.spooling(0), func(o *upload.Options) {
				o.Store = hook(w.store, func(context.Context) error { time.Sleep(time.Second); return failed }, "Save")
			})
			ended := calling(func() (*upload.Result, error) { return up.Reader(w.t.Context(), bytes.NewReader(content), spec) })
			time.Sleep(500 * time.Millisecond)
			synctest.Wait()
			names, size := w.spooled()
			if size != 1000 || slices.ContainsFunc(names, func(n string) bool { return filepath.Base(n) == "end.json" }) {
				t.Errorf("%d bytes in the spool, and the files %q", size, names)
			}
			if got := <-ended; !errors.Is(got.err, failed) {
				t.Errorf("error = %v, want %v", got.err, failed)
			}
			if failed == nil {
				w.wantObject("obj", content)
			}
			w.wantNothing()
		})
	}
}

// interruptSpooled uploads a stream of which the service accepts no request of a kind. Its input has ended.
func (k *partedSource) interruptSpooled(w *world, content []byte, op faults.Op) *upload.Result {
	w.t.Helper()
	w.addFaults(refusing(op, 503))
	res, err := k.send(w.t.Context(), w, k.uploader(w), spec, content)
	if !errors.Is(err, session.ErrRetriesExhausted) || !res.Resumable {
		w.t.Fatalf("%v, %+v\n%s", err, res, w.trace())
	}
	w.srv.ClearFaults()
	return res
}

// TestSpoolAway checks that a stream stays saved when its session is gone, because its files may be the only copy, even if
// they are on a volume that is not mounted. Then it cannot be resumed, and the directory is not made: it would be on
// another disk. Only Prune with PruneOptions.MissingSource removes it.
func TestSpoolAway(t *testing.T) {
	t.Parallel()
	for _, away := range []string{"", "its directory", "all"} {
		inBubble(t, nil, func(w *world) {
			content, up := data(5*mib), inSession.uploader(w)
			id := inSession.interruptSpooled(w, content, faults.OpFinalize).ID
			dir := w.spoolDir()
			if away == "its directory" {
				dir = filepath.Join(dir, id)
			}
			elsewhere := w.spoolDir() + ".elsewhere"
			if away != "" {
				require.NoError(t, os.Rename(dir, elsewhere))
			}
			for _, want := range []upload.SessionState{upload.SessionOpen, upload.SessionGone} {
				if away != "" {
					if res, err := up.Resume(w.t.Context(), id); !errors.Is(err, fs.ErrNotExist) || !res.Resumable {
						t.Errorf("Resume: %+v, %v", res, err)
					}
				}
				if away == "all" {
					w.fails(fs.ErrNotExist)(up.Reader(w.t.Context(), pieces(content), spec))
				}
				if p, err := firstOf(up.Prune(w.t.Context(), nil)); err != nil || p.State != want || p.Deleted {
					t.Errorf("pruned: %+v, %v", p, err)
				}
				if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) != (away != "") {
					t.Errorf("the directory was made: %v", err)
				}
				time.Sleep(15 * 24 * time.Hour)
			}
			if away == "its directory" {
				if p, err := firstOf(up.Prune(w.t.Context(), &upload.PruneOptions{MissingSource: true})); err != nil || !p.Deleted {
					t.Errorf("pruned: %+v, %v", p, err)
				}
				w.wantSaved(0)
				return
			}
			if away == "all" {
				require.NoError(t, os.Rename(elsewhere, dir))
			}
			w.done(up.Resume(w.t.Context(), id))
			w.wantOnlyObject(content)
		})
	}
}

// TestSpoolName checks that a stream is saved with the name that the caller gave, so that the caller finds it when
// the stream is interrupted, and that the name changes nothing else.
func TestSpoolName(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		w.down(faults.Action{Effect: faults.EffectStatus, Status: 503})
		var ids []string
		for _, name := range []string{"", "rows of a table", "rows of a table", "\xff"} {
			up := withCall(w.uploader(w.spooling(0)), upload.CallOptions{SourceName: name})
			res, err := up.Reader(w.t.Context(), pieces(data(mib)), spec)
			if name == "\xff" {
				if !errors.Is(err, session.ErrInvalid) || res.Resumable {
					t.Errorf("name that is not UTF-8: %v", err)
				}
				continue
			}
			if !errors.Is(err, session.ErrRetriesExhausted) {
				t.Fatal(err)
			}
			if _, err := w.uploader().Resume(w.t.Context(), res.ID); !errors.Is(err, session.ErrRetriesExhausted) { // saves it again
				t.Fatal(err)
			}
			for s, err := range up.Saved(w.t.Context()) {
				if err != nil || s.ID == res.ID && (s.Identity != name || s.Source() != "-") {
					t.Errorf("saved with the name %q: %+v, %v", name, s, err)
				}
			}
			ids = append(ids, res.ID)
		}
		w.wantSaved(3) // the same name is another stream
		w.srv.ClearFaults()
		require.NoError(t, os.RemoveAll(filepath.Join(w.spoolDir(), ids[2])))
		for p, err := range w.uploader().Prune(w.t.Context(), &upload.PruneOptions{MissingSource: true}) {
			if err != nil || p.Deleted != (p.ID == ids[2]) {
				t.Errorf("pruned: %+v, %v", p, err)
			}
		}
		for _, id := range ids[:2] {
			w.done(w.uploader().Resume(w.t.Context(), id))
		}
		w.wantObject("obj", data(mib))
		w.wantNothing()
	})
}

// TestSpoolSessionIsSavedFirst checks that no byte is sent in a session that the store does not have. What it
// commits is removed from the disk, and after a kill no process could continue. While the input lasts, the upload
// waits for the store; after that, it stays resumable.
func TestSpoolSessionIsSavedFirst(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{false, true} {
		inBubble(t, nil, func(w *world) {
			content := data(40 * mib)
			var saves atomic.Int64 // until the disk is full
			saves.Store(1)         // without the session
			up := w.uploader(w.spooling(0), func(o *upload.Options) {
				o.Store = hook(w.store, func(context.Context) error {
					if saves.Add(-1) < 0 {
						return errFull
					}
					return nil
				}, "Save")
			})
			in, end := w.stream(up, spec)
			in.Write(content[:30*mib])
			time.Sleep(time.Hour)
			if _, size := w.spooled(); size != 30*mib || strings.Contains(w.trace(), "put ") {
				t.Errorf("%d bytes are in the spool:\n%s", size, w.trace())
			}
			if w.saw(upload.Warning) != 1 {
				t.Errorf("%d warnings", w.saw(upload.Warning))
			}
			if !ends {
				saves.Store(1000)
				time.Sleep(time.Minute)
				if _, size := w.spooled(); size > 10*mib {
					t.Errorf("%d bytes are left in the spool", size)
				}
			}
			in.Write(content[30*mib:])
			res, err := end()
			if ends {
				if !errors.Is(err, syscall.ENOSPC) || !res.Resumable {
					t.Errorf("error = %v, %+v", err, res)
				}
				w.done(w.uploader().Resume(w.t.Context(), res.ID))
			} else if err != nil {
				t.Error(err)
			}
			w.wantObject("obj", content)
			w.wantNothing()
		})
	}
}

// TestSpoolNotRemoved checks that an upload whose files cannot be removed stays saved, so that Prune finds them.
func TestSpoolNotRemoved(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		content := data(mib)
		up := w.uploader(w.spooling(0))
		in, end := w.stream(up, spec)
		in.Write(content)
		synctest.Wait()
		saved, err := firstOf(up.Saved(w.t.Context()))
		require.NoError(t, err)
		obstacle := filepath.Join(w.spoolDir(), saved.ID, "obstacle")
		require.NoError(t, os.Mkdir(obstacle, 0o700))
		w.done(end())
		w.wantObject("obj", content)
		w.wantSaved(1)
		require.NoError(t, os.Remove(obstacle))
		if p, err := firstOf(up.Prune(w.t.Context(), nil)); err != nil || !p.Deleted {
			t.Errorf("pruned: %+v, %v", p, err)
		}
		w.wantNothing()
	})
}

// finalWith answers each last request of an upload with a status and a message.
func finalWith(status int, message string) faults.Fault {
	return faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: status, Message: message}}
}

const otherCRC = "Provided CRC32C does not match calculated CRC32C"

// TestSpoolOfARefusedStream checks what is kept of a stream that the service refuses after the end of its input. If all
// bytes are on disk, Resume makes the object, in a new session. If not, the stream is incomplete, except after a
// precondition, which leaves nothing. Spec.NoClobber leaves nothing in either case.
func TestSpoolOfARefusedStream(t *testing.T) {
	t.Parallel()
	absent := func(s *upload.Spec) { s.IfGenerationMatch = new(int64) }
	keep := func(s *upload.Spec) { s.IfGenerationMatch, s.NoClobber = new(int64), true }
	corrupt := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Times: -1, Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 7}}
	corruptLast := corrupt
	corruptLast.Match.Op = faults.OpFinalize
	write := func(w *world) {
		w.done(w.srv.PutObject(fakegcs.Object{Bucket: "bkt", Name: "obj"}, strings.NewReader("of another writer")))
	}
	for _, tt := range []struct {
		name  string
		size  int64
		fault faults.Fault
		spec  func(*upload.Spec)
		write func(*world) // before the end of the input
		want  error
		kept  bool // for Resume
		again error
	}{
		{"precondition, all on disk", 5 * mib, faults.Fault{}, absent, write, session.ErrPrecondition, true, nil},
		{"precondition that keeps an object, all on disk", 5 * mib, faults.Fault{}, keep, write, session.ErrPrecondition, false, state.ErrNotFound},
		{"precondition, released", 20 * mib, faults.Fault{}, absent, write, session.ErrPrecondition, false, state.ErrNotFound},
		{"412 of an open session", 20 * mib, finalWith(412, ""), nil, nil, session.ErrPrecondition, true, nil},
		{"checksum, all on disk", 5 * mib, finalWith(400, otherCRC), nil, nil, session.ErrChecksum, true, nil},
		{"checksum of an open session", 20 * mib, finalWith(400, otherCRC), nil, nil, session.ErrChecksum, true, nil},
		{"damaged on the way, released", 20 * mib, corruptLast, nil, nil, upload.ErrIncomplete, false, upload.ErrIncomplete},
		{"damaged on the way", 5 * mib, corrupt, nil, nil, session.ErrChecksum, true, nil},
		{"canceled by another client", 5 * mib, faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectCanceled}}, nil, nil, session.ErrCanceled, true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, nil, func(w *world) {
				s, content := spec, data(tt.size)
				if tt.spec != nil {
					tt.spec(&s)
				}
				up := w.uploader(w.spooling(0))
				in, end := w.stream(up, s)
				in.Write(content[:mib])
				time.Sleep(time.Second)
				synctest.Wait()
				if tt.write != nil {
					tt.write(w)
				} else {
					w.addFaults(tt.fault)
				}
				in.Write(content[mib:])
				res, err := end()
				if !errors.Is(err, tt.want) || errors.Is(err, upload.ErrIncomplete) != errors.Is(tt.want, upload.ErrIncomplete) || res.Resumable != tt.kept {
					t.Errorf("error = %v, resumable %v, want %v, %v", err, res.Resumable, tt.want, tt.kept)
				}
				w.srv.ClearFaults()
				if tt.write != nil {
					if err := w.srv.DeleteObject("bkt", "obj"); err != nil {
						t.Error(err)
					}
				}
				if _, again := up.Resume(w.t.Context(), res.ID); !errors.Is(again, tt.again) {
					t.Fatalf("resumed: %v, want %v\n%s", again, tt.again, w.trace())
				}
				switch {
				case tt.again == nil:
					w.wantObject("obj", content)
				case errors.Is(tt.again, upload.ErrIncomplete):
					if err := up.Cancel(w.t.Context(), res.ID); err != nil {
						t.Error(err)
					}
				}
				w.wantNothing()
			})
		})
	}
}

// TestSpoolRefusedSession checks that another process replaces a session whose checksum was refused, and one in which
// data is refused again, and that it starts one if the service refused its start after the input had ended.
func TestSpoolRefusedSession(t *testing.T) {
	t.Parallel()
	refuse := faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatus, Status: 400}}
	for _, tt := range []struct {
		name          string
		first, second []faults.Fault
		want          error // of the first process; nil means any
	}{
		{"checksum", []faults.Fault{
			{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 7}},
			{Match: faults.Match{Op: faults.OpStart}, Skip: 1, Times: -1, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
		}, nil, nil},
		{"data", []faults.Fault{refuse}, []faults.Fault{refuse}, nil},
		{"start", []faults.Fault{
			{Match: faults.Match{Op: faults.OpStart}, Times: 2, Do: faults.Action{Effect: faults.EffectStatus, Status: 503}},
			{Match: faults.Match{Op: faults.OpStart}, Do: faults.Action{Effect: faults.EffectStatus, Status: 412}},
		}, nil, session.ErrPrecondition},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, &fakegcs.Options{Faults: tt.first}, func(w *world) {
				content := data(5 * mib)
				res, err := w.uploader(w.spooling(0)).Reader(w.t.Context(), pieces(content), spec)
				if err == nil || tt.want != nil && !errors.Is(err, tt.want) || errors.Is(err, upload.ErrIncomplete) || !res.Resumable {
					t.Fatalf("%v, %+v", err, res)
				}
				w.srv.ClearFaults()
				w.addFaults(tt.second...)
				w.done(w.uploader().Resume(w.t.Context(), res.ID))
				w.wantObject("obj", content)
				w.wantNothing()
			})
		})
	}
}

// TestSpoolDamaged checks that a stream whose files are damaged is incomplete: Resume cannot make its object.
func TestSpoolDamaged(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(segment, end string) error{
		"a segment is missing": func(segment, _ string) error { return os.Remove(segment) },
		"a segment is short":   func(segment, _ string) error { return os.Truncate(segment, 100) },
		"a byte is changed":    func(segment, _ string) error { return editQuietly(segment, 1000) },
		"the end is cut":       func(_, end string) error { return os.Truncate(end, 10) },
	} {
		for k, op := range map[*partedSource]faults.Op{inSession: faults.OpPut, spooledStream: faults.OpPartsPut} {
			t.Run(name+"/"+k.name, func(t *testing.T) {
				inBubble(t, nil, func(w *world) {
					dir := filepath.Join(w.spoolDir(), k.interruptSpooled(w, data(10*mib), op).ID)
					segments, err := filepath.Glob(filepath.Join(dir, "00000000000000000000*"))
					if err != nil || len(segments) != 1 {
						t.Fatal(segments, err)
					}
					require.NoError(t, damage(segments[0], filepath.Join(dir, "end.json")))
					res, err := w.uploader().Resume(w.t.Context(), filepath.Base(dir))
					if !errors.Is(err, upload.ErrIncomplete) || res.Resumable {
						t.Errorf("%v, resumable %v", err, res.Resumable)
					}
					w.wantNoObject("obj")
					if err := w.uploader().Cancel(w.t.Context(), res.ID); err != nil {
						t.Error(err)
					}
					w.wantNothing()
				})
			})
		}
	}
}
