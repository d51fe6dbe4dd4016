package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/internal/testsize"
	"gcsup/session"
	"gcsup/upload"
)

// writeAll writes content in pieces of n bytes.
func writeAll(w io.Writer, content []byte, n int) error {
	for len(content) > 0 {
		piece := content[:min(n, len(content))]
		if _, err := w.Write(piece); err != nil {
			return err
		}
		content = content[len(piece):]
	}
	return nil
}

// TestWriter checks the object and the result at the boundaries of requests and
// windows.
func TestWriter(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, 1, q - 1, q, q + 1, 2 * q, mib - 1, mib, mib + 1, 3*mib + 7} {
		inBubble(t, nil, func(w *world) {
			up := w.uploader(func(o *upload.Options) { o.Window = int(mib) })
			out := up.NewWriter(w.t.Context(), spec)
			defer out.Abort()
			if out.Result() != nil {
				t.Error("there is a result before the first write")
			}
			require.NoError(t, writeAll(out, data(size), 100_000))
			require.NoError(t, out.Close())
			w.wantObject("obj", data(size))
			if r := out.Result(); r == nil || r.Object == nil || r.Size != size || r.Object.Generation == 0 {
				t.Errorf("%d bytes: result = %+v", size, r)
			}
			if err := out.Close(); err != nil {
				t.Errorf("second Close: %v", err)
			}
			w.fails(fs.ErrClosed)(out.Write([]byte("x")))
			out.Abort()
			w.wantObject("obj", data(size))
		})
	}
}

// TestWriterAttributes checks that attributes may be set after NewWriter, and that
// the content type is detected from the first bytes unless it is given.
func TestWriterAttributes(t *testing.T) {
	for given, want := range map[string]string{"": "text/html; charset=utf-8", "text/plain": "text/plain"} {
		inBubble(t, nil, func(w *world) {
			out := w.uploader().NewWriter(w.t.Context(), spec)
			defer out.Abort()
			out.ContentType = given
			out.CacheControl = "no-store"
			out.Metadata = map[string]string{"k": "v"}
			w.done(io.WriteString(out, "<html><body>"))
			require.NoError(t, out.Close())
			o, _ := w.srv.Object("bkt", "obj")
			if o.ContentType != want || o.CacheControl != "no-store" || o.Metadata["k"] != "v" {
				t.Errorf("object = %+v, want content type %q", o, want)
			}
		})
	}
}

// TestWriterNeverPublishes checks that without a successful Close there is no object,
// and no session is left.
func TestWriterNeverPublishes(t *testing.T) {
	t.Parallel()
	skipShort(t)
	errExport := errors.New("export failed")
	for name, use := range map[string]func(w *upload.Writer, cancel func()) error{
		"early return": func(w *upload.Writer, _ func()) error {
			defer w.Abort()
			if err := writeAll(w, data(5*mib), 1<<20); err != nil {
				return err
			}
			return errExport
		},
		"aborted, then closed": func(w *upload.Writer, _ func()) error {
			_ = writeAll(w, data(5*mib), 1<<20)
			w.Abort()
			if w.Close() == nil {
				return nil
			}
			return errExport
		},
		"aborted at once, then closed": func(w *upload.Writer, _ func()) error {
			w.Abort()
			if !errors.Is(w.Close(), fs.ErrClosed) {
				return nil
			}
			return errExport
		},
		"canceled, then closed": func(w *upload.Writer, cancel func()) error {
			defer w.Abort()
			_ = writeAll(w, data(5*mib), 1<<20)
			cancel()
			if err := w.Close(); !errors.Is(err, context.Canceled) {
				return err
			}
			return errExport
		},
		"canceled before": func(w *upload.Writer, cancel func()) error {
			defer w.Abort()
			cancel()
			if err := writeAll(w, data(50*mib), 1<<20); !errors.Is(err, context.Canceled) {
				return err
			}
			return errExport
		},
		"aborted while writing": func(w *upload.Writer, _ func()) error {
			time.AfterFunc(time.Second, w.Abort)
			if _, err := io.Copy(w, &endless{}); !errors.Is(err, context.Canceled) {
				return err
			}
			w.Abort()
			return errExport
		},
		"reader fails": func(w *upload.Writer, _ func()) error {
			defer w.Abort()
			_, err := w.ReadFrom(io.MultiReader(bytes.NewReader(data(3*mib)), errReader{errExport}))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, &fakegcs.Options{Rate: 10 << 20}, func(w *world) {
				ctx, cancel := context.WithCancel(w.t.Context())
				defer cancel()
				up := w.uploader(func(o *upload.Options) { o.Window = int(mib) })
				if err := use(up.NewWriter(ctx, spec), cancel); !errors.Is(err, errExport) {
					t.Errorf("error = %v, want that of the export", err)
				}
				w.wantNoObject("obj")
				w.wantNoSession()
			})
		})
	}
}

// endless is a reader without end.
type endless struct{}

func (*endless) Read(p []byte) (int, error) { time.Sleep(time.Millisecond); return len(p), nil }

// errReader fails.
type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// wantNoSession checks that each session that was opened was also canceled.
func (w *world) wantNoSession() {
	w.t.Helper()
	if ops := w.srv.Stats().Ops; ops[faults.OpCancel] != ops[faults.OpStart] {
		w.t.Errorf("%d sessions were opened and %d canceled", ops[faults.OpStart], ops[faults.OpCancel])
	}
}

// TestWriterFailsAtOnce checks that the error of the upload ends a Write that waits
// for memory, before the session is canceled.
func TestWriterFailsAtOnce(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		w.addFaults(
			faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatus, Status: 403}},
			faults.Fault{Match: faults.Match{Op: faults.OpCancel}, Do: faults.Action{Effect: faults.EffectStall, For: time.Minute}},
		)
		up := w.uploader(func(o *upload.Options) { o.Window = int(mib) })
		out := up.NewWriter(w.t.Context(), spec)
		start := time.Now()
		err := writeAll(out, data(20*mib), 1<<20)
		if !errors.Is(err, session.ErrPermission) || time.Since(start) > time.Second {
			t.Errorf("error after %v = %v, want ErrPermission at once", time.Since(start), err)
		}
		if _, again := out.Write([]byte("x")); !errors.Is(again, session.ErrPermission) {
			t.Errorf("next Write: %v", again)
		}
		w.wantError(out.Close(), session.ErrPermission)
		if r := out.Result(); r == nil || r.Object != nil {
			t.Errorf("result = %+v", r)
		}
		w.wantNoObject("obj")
	})
}

// TestWriterInvalid checks that a bad destination is an error of the first call.
func TestWriterInvalid(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		out := w.uploader().NewWriter(w.t.Context(), upload.Spec{Bucket: "bkt"})
		w.wantError(writeAll(out, data(20*mib), 1<<20), session.ErrInvalid)
		w.wantError(out.Close(), session.ErrInvalid)
	})
}

// TestWriterFile checks the object after files are written by ReadFrom, by io.Copy
// and from an fs.FS, with faults, and with other writes after them.
func TestWriterFile(t *testing.T) {
	t.Parallel()
	skipShort(t)
	sizes := []int64{0, 1, q, q + 1, 2 * q, 2*q + 1, 3*mib + 5}
	for s, size := range sizes {
		for o, from := range []int64{0, 1, q} {
			for i, fault := range []*faults.Action{
				nil,
				{Effect: faults.EffectStatusAfter, Status: 503, Bytes: q + 100},
				{Effect: faults.EffectShortCommit, Bytes: q},
				{Effect: faults.EffectNotFound},
				{Effect: faults.EffectCutReply},
			} {
				if from > size || (s+o+i)%testsize.Full(1, 3) != 0 {
					continue
				}
				inBubble(t, nil, func(w *world) {
					if fault != nil {
						w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: *fault})
					}
					f, err := os.Open(w.file(data(size)))
					require.NoError(t, err)
					w.done(f.Seek(from, io.SeekStart))
					up := w.uploader(func(o *upload.Options) { o.Window, o.ChunkSize = int(mib), mib })
					out := up.NewWriter(w.t.Context(), spec)
					defer out.Abort()
					n, err := out.ReadFrom(f)
					if err != nil || n != size-from {
						t.Fatalf("%d bytes from %d, fault %d: ReadFrom = %d, %v", size, from, i, n, err)
					}
					if at, err := f.Seek(0, io.SeekCurrent); err != nil || at != size {
						t.Errorf("the offset of the file is %d, %v, want %d", at, err, size)
					}
					require.NoError(t, f.Close())
					w.done(io.WriteString(out, "trailer"))
					if err := out.Close(); err != nil {
						t.Fatalf("%d bytes from %d, fault %d: %v", size, from, i, err)
					}
					w.wantObject("obj", append(bytes.Clone(data(size)[from:]), "trailer"...))
				})
			}
		}
	}
}

// TestWriterCopiesFile checks that a file needs no memory for its bytes through
// io.Copy, which hides that it is an *os.File.
func TestWriterCopiesFile(t *testing.T) {
	t.Parallel()
	content := data(5 * mib)
	for name, open := range map[string]func(w *world) (io.Reader, error){
		"os": func(w *world) (io.Reader, error) { return os.Open(w.file(content)) },
		"fs": func(*world) (io.Reader, error) { return fstest.MapFS{"f": {Data: content}}.Open("f") },
	} {
		inBubble(t, nil, func(w *world) {
			r, err := open(w)
			require.NoError(t, err)
			out := w.uploader(func(o *upload.Options) { o.Window = int(q) }).NewWriter(w.t.Context(), spec)
			defer out.Abort()
			if n, err := io.Copy(out, r); err != nil || n != int64(len(content)) {
				t.Fatalf("%s: %d, %v", name, n, err)
			}
			require.NoError(t, r.(io.Closer).Close())
			require.NoError(t, out.Close())
			w.wantObject("obj", content)
			if n := w.srv.Stats().Ops[faults.OpPut]; n != 1 {
				t.Errorf("%s: %d requests with data before the last, want 1: the file was read as a stream", name, n)
			}
		})
	}
}

// TestWriterFileChanges checks that a file that changes while it is sent is not
// published, and that the loss of a session after the end of the file was passed on
// is an error.
func TestWriterFileChanges(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(w *world) {
		path := w.file(data(5 * mib))
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStatusAfter, Status: 503, Bytes: 2 * mib}})
		up := w.uploader(func(o *upload.Options) {
			o.Observer = func(e upload.Event) {
				if e.Kind == upload.Waiting {
					if err := os.WriteFile(path, data(5*mib+1), 0o600); err != nil {
						t.Error(err)
					}
				}
			}
		})
		f, err := os.Open(path)
		require.NoError(t, err)
		defer f.Close()
		out := up.NewWriter(w.t.Context(), spec)
		w.fails(session.ErrSourceChanged)(io.Copy(out, f))
		w.wantError(out.Close(), session.ErrSourceChanged)
		w.wantNoObject("obj")
		w.wantNoSession()
	})
	inBubble(t, nil, func(w *world) {
		f, err := os.Open(w.file(data(5 * mib)))
		require.NoError(t, err)
		out := w.uploader().NewWriter(w.t.Context(), spec)
		w.done(out.ReadFrom(f))
		f.Close()
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpFinalize}, Do: faults.Action{Effect: faults.EffectNotFound}})
		w.wantError(out.Close(), session.ErrSessionLost)
		w.wantNoObject("obj")
	})
}

// TestWriterEmptyWrites checks that writes of no bytes have no effect.
func TestWriterEmptyWrites(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		out := w.uploader().NewWriter(w.t.Context(), spec)
		defer out.Abort()
		for range 300 {
			if n, err := out.Write(nil); n != 0 || err != nil {
				t.Fatal(n, err)
			}
		}
		w.done(fmt.Fprint(out, "x"))
		require.NoError(t, out.Close())
		w.wantObject("obj", []byte("x"))
	})
}

// TestWriterFileCommittedLate checks that a file is sent again if the service commits bytes that were not yet read, after
// it has replied to a query.
func TestWriterFileCommittedLate(t *testing.T) {
	t.Parallel()
	skipShort(t)
	inBubble(t, nil, func(w *world) {
		content := data(5*mib + 9)
		w.addFaults(
			faults.Fault{Match: faults.Match{Op: faults.OpPut, Nth: 1}, Do: faults.Action{Effect: faults.EffectLateCommit, Bytes: 5 * mib, For: 5 * time.Second}},
			faults.Fault{Match: faults.Match{Op: faults.OpPut, Nth: 2}, Do: faults.Action{Effect: faults.EffectStallBody, Bytes: 1000, For: time.Minute}},
		)
		f, err := os.Open(w.file(content))
		require.NoError(t, err)
		defer f.Close()
		up := w.uploader(func(o *upload.Options) {
			o.Window, o.ChunkSize, o.StallTimeout = int(mib), 5*mib, 30*time.Second // more than is read ahead
		})
		out := up.NewWriter(w.t.Context(), spec)
		defer out.Abort()
		if n, err := out.ReadFrom(f); err != nil || n != int64(len(content)) {
			t.Errorf("ReadFrom = %d, %v", n, err)
		}
		w.done(io.WriteString(out, "trailer"))
		require.NoError(t, out.Close())
		w.wantObject("obj", append(bytes.Clone(content), "trailer"...))
		for _, f := range w.srv.FaultReport() {
			if !f.Done {
				t.Errorf("a fault did not act:\n%s", w.trace())
			}
		}
	})
}

// TestWriterInterrupted checks that the error of a Write does not change while the
// upload ends.
func TestWriterInterrupted(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		w.addFaults(
			faults.Fault{Match: faults.Match{Op: faults.OpPut}, Do: faults.Action{Effect: faults.EffectStall}},
			faults.Fault{Match: faults.Match{Op: faults.OpCancel}, Do: faults.Action{Effect: faults.EffectStall, For: time.Minute}},
		)
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		out := w.uploader(func(o *upload.Options) { o.Window = int(mib) }).NewWriter(ctx, spec)
		err := writeAll(out, data(5*mib), 1<<20)
		e, ok := errors.AsType[*upload.InterruptedError](err)
		if !ok || e.Resumable { // a race if the upload sets it later
			t.Errorf("error = %v, want an InterruptedError that is not resumable", err)
		}
		w.wantError(out.Close(), context.DeadlineExceeded)
	})
}

// hungFile is a file whose bytes can be read after release.
type hungFile struct {
	fs.File
	io.Seeker
	release chan struct{}
}

func (h *hungFile) ReadAt(_ []byte, offset int64) (int, error) {
	if offset >= 5*mib {
		return 0, io.EOF
	}
	<-h.release
	return 0, errors.New("stale file handle")
}

// TestWriterFileHangs checks that Abort returns even if a read of a file hangs.
func TestWriterFileHangs(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		f, err := fstest.MapFS{"f": {Data: data(5 * mib)}}.Open("f")
		require.NoError(t, err)
		hung := &hungFile{File: f, Seeker: f.(io.Seeker), release: make(chan struct{})}
		out := w.uploader().NewWriter(w.t.Context(), upload.Spec{Bucket: "bkt", Object: "obj", ContentType: "text/plain"})
		read := make(chan error, 1)
		go func() {
			_, err := out.ReadFrom(hung)
			read <- err
		}()
		time.Sleep(time.Second)
		ended := make(chan struct{})
		go func() {
			out.Abort()
			close(ended)
		}()
		select {
		case <-ended:
			w.wantError(<-read, context.Canceled)
		case <-time.After(time.Minute):
			t.Error("Abort has not returned after a minute")
		}
		close(hung.release)
		<-ended
		w.wantNoObject("obj")
	})
}

// TestWriteDuringClose checks that a Write in another goroutine, which copies the
// output of a program for example, returns when the Writer is closed.
func TestWriteDuringClose(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpStart}, Do: faults.Action{Effect: faults.EffectDelay, For: time.Minute}})
		out := w.uploader(func(o *upload.Options) { o.Window = int(q) }).NewWriter(w.t.Context(), spec)
		defer out.Abort()
		wrote := make(chan error, 1)
		go func() {
			_, err := out.Write(data(5 * mib))
			wrote <- err
		}()
		time.Sleep(time.Second)
		_ = out.Close()
		select {
		case err := <-wrote:
			if err == nil {
				t.Error("no error for what was not written")
			}
		case <-time.After(time.Hour):
			t.Fatal("Write has not returned after an hour")
		}
	})
}
