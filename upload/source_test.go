package upload_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// TestReaderAtInvalid checks that a negative size, and an identity that is no text, are refused.
func TestReaderAtInvalid(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		for _, identity := range []string{"", "\xff"} {
			if _, err := w.uploader().ReaderAt(w.t.Context(), bytes.NewReader(nil), int64(len(identity))-1, identity, spec); !errors.Is(err, session.ErrInvalid) {
				t.Errorf("%q: error = %v, want ErrInvalid", identity, err)
			}
		}
	})
}

// TestReaderAtReportsAnErrorLate checks that no object is made if ReadAt returns all bytes and an
// error, such as a reader that compares a checksum when it has read the last byte.
func TestReaderAtReportsAnErrorLate(t *testing.T) {
	t.Parallel()
	errDamaged := errors.New("the entry does not have its checksum")
	for _, size := range []int64{1, q, 9 * mib} {
		inBubble(t, nil, func(w *world) {
			_, err := w.uploader().ReaderAt(w.t.Context(), damagedAt{data(size), errDamaged}, size, "", spec)
			if !errors.Is(err, chunk.ErrRead) || !errors.Is(err, errDamaged) {
				t.Errorf("%d bytes: error = %v, want ErrRead and that of ReadAt", size, err)
			}
			w.wantNoObject("obj")
		})
	}
}

// damagedAt returns err with the last byte.
type damagedAt struct {
	content []byte
	err     error
}

func (d damagedAt) ReadAt(p []byte, off int64) (int, error) {
	n := copy(p, d.content[off:])
	if off+int64(n) == int64(len(d.content)) {
		return n, d.err
	}
	return n, nil
}

// interruptReaderAt uploads until the server has at bytes, and then cancels.
func (w *world) interruptReaderAt(content []byte, identity string, at int64) *upload.Result {
	w.t.Helper()
	stall := faults.Fault{Match: faults.Match{Op: faults.OpPut, From: at, To: at + 1}, Do: faults.Action{Effect: faults.EffectStallBody, Bytes: at}}
	w.addFaults(stall)
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	r, err := w.uploader().ReaderAt(ctx, bytes.NewReader(content), int64(len(content)), identity, spec)
	if !errors.Is(err, context.DeadlineExceeded) {
		w.t.Fatalf("interrupted upload: %v", err)
	}
	return r
}

// TestReaderAtResume checks that a second call with the same identity resumes, and
// reads again only bytes that no checkpoint covers.
func TestReaderAtResume(t *testing.T) {
	t.Parallel()
	skipShort(t)
	content := data(20 * mib)
	// The service reports no checksum of what it holds, which would be compared, too.
	inBubble(t, &fakegcs.Options{NoMD5: true}, func(w *world) {
		first := w.interruptReaderAt(content, "report@7", 10*mib)
		if !first.Resumable || first.ID == "" {
			t.Fatalf("first call: %+v", first)
		}
		w.wantSaved(1)
		if res, err := w.uploader().Resume(w.t.Context(), first.ID); !errors.Is(err, upload.ErrSourceNeeded) || errors.Is(err, session.ErrInvalid) || !res.Resumable {
			t.Errorf("Resume: %v, resumable %t, want ErrSourceNeeded", err, res.Resumable)
		}
		if _, err := w.uploader().ReaderAt(w.t.Context(), bytes.NewReader(content[1:]), int64(len(content)-1), "report@7", spec); !errors.Is(err, session.ErrSourceChanged) {
			t.Errorf("another size: error = %v, want ErrSourceChanged", err)
		}
		r, err := w.uploader().ReaderAt(w.t.Context(), bytes.NewReader(content), int64(len(content)), "report@7", spec)
		require.NoError(t, err)
		if !r.Resumed || r.ResumedFrom != 10*mib || r.BytesSent != 10*mib || r.ID != first.ID {
			t.Errorf("second call: %+v", r)
		}
		if r.BytesReread > 10*mib {
			t.Errorf("%d bytes were read again", r.BytesReread)
		}
		w.wantObject("obj", content)
		w.wantSaved(0)
	})
	inBubble(t, nil, func(w *world) {
		first := w.interruptReaderAt(content, "report@7", 10*mib)
		other := bytes.Clone(content)
		other[0]++
		// Another identity is another upload.
		r, err := w.uploader().ReaderAt(w.t.Context(), bytes.NewReader(other), int64(len(other)), "report@8", spec)
		if err != nil || r.Resumed {
			t.Fatalf("another identity: %+v, %v", r, err)
		}
		w.wantObject("obj", other)

		// A file on another machine continues the first one.
		doc, err := w.store.Load(w.t.Context(), first.ID)
		require.NoError(t, err)
		id, err := w.uploader().Import(w.t.Context(), doc, w.file(content))
		require.NoError(t, err)
		if r, err := w.uploader().Resume(w.t.Context(), id); err != nil || r.ResumedFrom != 10*mib {
			t.Fatalf("%+v, %v", r, err)
		}
		w.wantObject("obj", content)
	})
	inBubble(t, &fakegcs.Options{}, func(w *world) {
		w.interruptReaderAt(content, "report@7", 10*mib)
		other := bytes.Clone(content)
		other[0]++
		again := func(with ...func(*upload.Options)) error {
			_, err := w.uploader(with...).ReaderAt(w.t.Context(), bytes.NewReader(other), int64(len(other)), "report@7", spec)
			return err
		}
		w.wantError(again(), session.ErrSourceChanged)
		w.wantNoObject("obj")
		require.NoError(t, again(func(o *upload.Options) { o.RestartChanged = true }))
		w.wantObject("obj", other)
	})
}

// streamFS is a file system whose files can only be read from start to end.
type streamFS struct{ fs.FS }

func (s streamFS) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return struct{ fs.File }{f}, nil
}

// TestFS checks files of several file systems.
func TestFS(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, 1, 9 * mib} {
		content := data(size)
		memory := fstest.MapFS{"d/f": {Data: content}}
		for name, open := range map[string]func(dir string) fs.FS{
			"memory": func(string) fs.FS { return memory },
			"disk":   func(dir string) fs.FS { return os.DirFS(dir) },
			"stream": func(string) fs.FS { return streamFS{memory} },
		} {
			t.Run(name, func(t *testing.T) {
				inBubble(t, nil, func(w *world) {
					dir := filepath.Join(w.dir, "tree")
					require.NoError(t, os.MkdirAll(filepath.Join(dir, "d"), 0o700))
					require.NoError(t, os.WriteFile(filepath.Join(dir, "d", "f"), content, 0o600))
					fsys := open(dir)
					w.done(w.uploader().FS(w.t.Context(), fsys, "d/f", spec))
					w.wantObject("obj", content)
					w.fails(chunk.ErrNotRegular)(w.uploader().FS(w.t.Context(), fsys, "d", spec))
					w.fails(fs.ErrNotExist)(w.uploader().FS(w.t.Context(), fsys, "none", spec))
				})
			})
		}
	}
}

// TestExpectedSizeOfFS checks that the size that the caller expects has priority over
// the one that a file system reports.
func TestExpectedSizeOfFS(t *testing.T) {
	inBubble(t, nil, func(w *world) {
		memory := fstest.MapFS{"f": {Data: data(10)}}
		for want, kind := range map[int64]error{9: session.ErrInvalid, 10: nil, 11: upload.ErrTruncated} {
			for name, fsys := range map[string]fs.FS{"memory": memory, "stream": streamFS{memory}} {
				s := spec
				s.Object = fmt.Sprint(name, want)
				_, err := withCall(w.uploader(), upload.CallOptions{Size: &want}).FS(w.t.Context(), fsys, "f", s)
				if !errors.Is(err, kind) || (err == nil) != (kind == nil) {
					t.Errorf("%s, expected %d of 10 bytes: error = %v, want %v", name, want, err, kind)
				}
				if kind != nil {
					w.wantNoObject(s.Object)
				}
			}
		}
	})
}
