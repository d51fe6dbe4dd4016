package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"
	"time"

	"gcsup/chunk"
	"gcsup/internal/sourcefile"
)

// errAborted is the cause of the end of a [Writer] that was aborted.
var errAborted = errors.New("the Writer was aborted")

var errClosed = fmt.Errorf("upload: the Writer is closed: %w", fs.ErrClosed)

// A Writer uploads what is written to it. [Writer.Close] publishes the object.
// Without Close there is no object:
//
//	w := up.NewWriter(ctx, upload.Spec{Bucket: "my-bucket", Object: "report.csv"})
//	defer w.Abort() // does nothing after Close
//	if err := export(w); err != nil {
//		return err
//	}
//	return w.Close()
//
// If the function returns early or panics, or ctx ends, there is no truncated object.
//
// Write, ReadFrom and Close are for one goroutine. Abort and Result may be called
// from any.
type Writer struct {
	// Spec has the attributes of the object. It must not change after the first
	// call of Write, ReadFrom or Close.
	Spec

	u      *Uploader
	ctx    context.Context
	r      *io.PipeReader
	w      *io.PipeWriter
	failed context.Context // ends when the upload has failed; its cause is the error
	fail   func(error)     // ends failed, and the current Write; only the first call has an effect
	done   chan struct{}   // closed when the upload has ended, including its cleanup after a failure

	mu     sync.Mutex
	state  writerState
	cancel context.CancelCauseFunc // of an upload that has started

	// These are valid when done is closed.
	result *Result
	err    error
}

type writerState int

const (
	writerNew     writerState = iota
	writerOpen                // the upload has started
	writerClosed              // Close was called
	writerAborted             // Abort was called before Close
)

var (
	_ io.WriteCloser = (*Writer)(nil)
	_ io.ReaderFrom  = (*Writer)(nil)
)

// NewWriter returns a Writer for the object that spec describes. It sends nothing
// before the first call of Write, ReadFrom or Close. If spec has no content type,
// the object gets the one that [net/http.DetectContentType] finds for its first 512
// bytes, unless [Options.DetectContentType] is set.
//
// If ctx is done, the methods return the error of an interrupted upload. The caller
// must call Close or Abort.
func (u *Uploader) NewWriter(ctx context.Context, spec Spec) *Writer {
	if u.opts.DetectContentType == nil {
		own := *u
		own.opts.DetectContentType = http.DetectContentType
		u = &own
	}
	r, w := io.Pipe()
	failed, fail := context.WithCancelCause(context.Background())
	return &Writer{
		Spec: spec, u: u, ctx: ctx, r: r, w: w, failed: failed, done: make(chan struct{}),
		fail: func(err error) {
			fail(err)
			_ = r.CloseWithError(err) // ends a Write
		},
	}
}

// Write writes p to the object. It returns when p is copied. The Writer keeps bytes in memory until they
// are committed, at most two windows ([Options.Window]), or its parts ([Parts]). While the service does
// not answer, Write therefore waits. If the upload fails, Write returns its error at once, and so does
// every later call.
func (w *Writer) Write(p []byte) (int, error) {
	if err := w.start(nil); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := w.w.Write(p)
	if err != nil {
		err = w.ended()
	}
	return n, err
}

// ended returns the error with which the read end of the pipe was closed, which may
// be before the upload has failed. If another goroutine closed the Writer, it returns
// that error.
func (w *Writer) ended() error {
	select {
	case <-w.failed.Done():
		return context.Cause(w.failed)
	case <-w.done:
		return cmp.Or(w.err, errClosed)
	}
}

// Close publishes the written bytes. If it returns nil, the object exists and has
// exactly these bytes. If nothing was written, the object is empty. Later calls
// return the same error. After Abort there is no object, and Close returns an error.
func (w *Writer) Close() error {
	if err := w.start(nil); err != nil && !errors.Is(err, fs.ErrClosed) {
		return err
	}
	w.mu.Lock()
	if w.state == writerOpen {
		w.state = writerClosed
		_ = w.w.Close()
	}
	w.mu.Unlock()
	<-w.done
	return w.err
}

// Abort ends the upload without an object, and requests that the service drops the
// bytes that were sent. It returns when the upload has ended, within a few seconds.
// Abort does nothing after Close. To interrupt a Close, cancel the context of the
// Writer.
func (w *Writer) Abort() {
	w.mu.Lock()
	switch w.state {
	case writerNew:
		w.err = fmt.Errorf("%w: %w", errAborted, fs.ErrClosed)
		close(w.done)
	case writerOpen:
		w.cancel(errAborted)
	}
	if w.state != writerClosed {
		w.state = writerAborted
	}
	aborted := w.state == writerAborted
	w.mu.Unlock()
	if aborted {
		<-w.done
	}
}

// Result describes the upload, even if it failed. It is nil before Close or Abort has
// returned, and if the upload was never started.
func (w *Writer) Result() *Result {
	select {
	case <-w.done:
		return w.result
	default:
		return nil
	}
}

// start starts the upload if it has not started. first, if not nil, is sent before
// the written bytes. The error wraps [fs.ErrClosed] after Close and Abort.
func (w *Writer) start(first *firstFile) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.state {
	case writerOpen:
		return nil
	case writerClosed:
		return errClosed
	case writerAborted:
		return fmt.Errorf("upload: %w: %w", errAborted, fs.ErrClosed)
	}
	w.state = writerOpen
	ctx, cancel := context.WithCancelCause(w.ctx)
	w.cancel = cancel
	c := newCall(ctx, w.u, w.Spec, w.u.newBudget())
	c.result.failed = w.fail
	go func() {
		defer cancel(nil)
		upload := func(ctx context.Context) error { return uploadWritten(ctx, c, first, pipeEnd{w.r}) }
		if first != nil {
			w.result, w.err = c.do(ctx, upload) // do returns even if a read of the file hangs
		} else {
			w.result, w.err = c.finish(ctx, upload(ctx))
		}
		if w.err != nil {
			w.fail(w.err)
		}
		close(w.done)
	}()
	return nil
}

// pipeEnd is the end of a pipe whose Read can be interrupted, see [Uploader.Reader].
type pipeEnd struct{ *io.PipeReader }

// SetReadDeadline ends the current Read, and the upload. It is called with a time in
// the past, and then with the zero time, which it ignores.
func (p pipeEnd) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		_ = p.CloseWithError(io.ErrClosedPipe)
	}
	return nil
}

// ReadFrom writes the bytes of r until EOF.
//
// If r is a regular file and nothing was written before, it is sent from its current
// offset to its end without a copy in memory. r may be an *[os.File], or a file of an
// [io/fs.FS] with the methods ReadAt and Seek. [io.Copy] calls ReadFrom.
//
// ReadFrom of such a file returns when the service has committed all of it but the last
// bytes, at most 256 KiB, which are copied. The file's offset is then at its end, and
// the caller may close it. If the session is lost before that, the file is read again.
// If the file changes meanwhile, the error is [session.ErrSourceChanged]. To detect
// that, ReadFrom first writes the latest changes of the file to its disk (fsync).
func (w *Writer) ReadFrom(r io.Reader) (int64, error) {
	first, n, err := w.fileFrom(r)
	if err != nil {
		return 0, err
	}
	if first == nil {
		return io.Copy(struct{ io.Writer }{w}, r)
	}
	if err := w.start(first); err != nil {
		return 0, err
	}
	select {
	case tail := <-first.tail:
		if _, err := w.Write(tail); err != nil {
			return n - int64(len(tail)), err
		}
	case <-w.failed.Done():
		return 0, context.Cause(w.failed)
	}
	_, err = r.(io.Seeker).Seek(n, io.SeekCurrent)
	return n, err
}

// fileFrom returns the rest of the file r and the number of its bytes. It is nil if r is not
// such a file, or too short for a request that is not the last.
func (w *Writer) fileFrom(r io.Reader) (*firstFile, int64, error) {
	w.mu.Lock()
	started := w.state != writerNew
	w.mu.Unlock()
	f, ok := r.(interface {
		sourcefile.ReaderAt
		io.Seeker
	})
	if started || !ok || w.Gzip || w.u.opts.Spool != nil {
		return nil, 0, nil
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, 0, nil
	}
	offset, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, 0, fmt.Errorf("upload: %w: %w", chunk.ErrRead, err)
	}
	if info.Size()-offset <= chunk.Granularity {
		return nil, 0, nil
	}
	src, err := sourcefile.FromFile(f, offset)
	if err != nil {
		return nil, 0, nil // it has content after its size, and is read as a stream
	}
	return &firstFile{src: src, tail: make(chan []byte, 1)}, src.Size(), nil
}
