package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
	"unicode/utf8"

	"gcsup/session"
)

// CallOptions are options of single calls, see [Uploader.With]. A field that is
// zero keeps what the Uploader has.
type CallOptions struct {
	// Observer, RetryFor, Window and DetectContentType are those of [Options].
	Observer          func(Event)
	RetryFor          time.Duration
	Window            int
	DetectContentType func(head []byte) string

	// Header is added to every request, for example X-Goog-Request-Reason or
	// X-Goog-Custom-Audit-*, except those of an [Options.Objects] without a method
	// WithHeader, and those of [Options.Store]. Headers of the protocol are refused.
	Header http.Header

	// Size, if not nil, is how many bytes the source must have. If it has fewer,
	// the error wraps [ErrTruncated], and if it has more, [session.ErrInvalid].
	// In both cases no object is published.
	Size *int64

	// SourceVersion names the content of a file, for example by the revision or the
	// hash that another system has for it. A saved upload keeps it. If the caller
	// gives a version when the upload is resumed, it is compared instead of the
	// times and the inode of the file: a copy on another machine need not be read
	// from its start. A version must never name other bytes later. A resume compares
	// only the size and the bytes between the last two saved checksums, usually
	// 64 MiB. Another version is [session.ErrSourceChanged].
	SourceVersion string

	// Confirm, if not nil, is called when the source has ended, before the
	// request that publishes the object, once for each upload. If it returns an
	// error, no object is published, and the error of the upload wraps it. Use
	// it to wait for the end of a program whose output is uploaded, see
	// [os/exec.Cmd.Wait].
	Confirm func(ctx context.Context) error
}

// With returns an Uploader that makes its calls with other options. It shares
// the connections, the store, the gate and the limits of u:
//
//	result, err := up.With(upload.CallOptions{RetryFor: time.Hour}).File(ctx, path, spec)
//
// Options that are not valid are the error of each call.
func (u *Uploader) With(o CallOptions) *Uploader {
	own := *u
	if o.Observer != nil {
		own.opts.Observer = o.Observer
	}
	if o.RetryFor != 0 {
		own.opts.RetryFor = o.RetryFor
	}
	if o.Window != 0 {
		own.opts.Window = o.Window
	}
	if o.DetectContentType != nil {
		own.opts.DetectContentType = o.DetectContentType
	}
	if o.Size != nil {
		own.expect.size = new(*o.Size)
	}
	if o.SourceVersion != "" {
		own.expect.version = o.SourceVersion
	}
	if o.Confirm != nil {
		own.expect.confirm = o.Confirm
	}
	var err error
	if own.opts, err = own.opts.withDefaults(); err != nil {
		own.reject(err)
	}
	if !utf8.ValidString(o.SourceVersion) {
		own.reject(fmt.Errorf("source version %q: want UTF-8", o.SourceVersion))
	}
	if o.Size != nil && *o.Size < 0 {
		own.reject(errors.New("size: want a number that is not negative"))
	}
	if client, err := u.client.WithHeader(o.Header); err != nil {
		own.reject(err)
	} else if o.Header != nil {
		own.client = client
		if u.opts.Objects == Objects(u.client) {
			own.opts.Objects = client
		} else {
			own.opts.Objects = withHeader(u.opts.Objects, o.Header)
		}
	}
	return &own
}

// reject notes that the options are not valid. The first error stays, even if
// [Uploader.With] is called again.
func (u *Uploader) reject(err error) {
	if u.invalid == nil {
		u.invalid = fmt.Errorf("call options: %w: %w", session.ErrInvalid, err)
	}
}

// expectation is what a caller knows of a source and its end.
type expectation struct {
	size    *int64                      // nil if the caller does not know it
	version string                      // of a file, "" if the caller does not name it
	confirm func(context.Context) error // nil if there is nothing to confirm
}

// once returns the expectation of one upload, whose confirm calls the caller's
// once.
func (e expectation) once() expectation {
	confirm := e.confirm
	if confirm == nil {
		return e
	}
	var called bool
	var result error
	e.confirm = func(ctx context.Context) error {
		if !called {
			called, result = true, confirm(ctx)
		}
		return result
	}
	return e
}

// sized checks the size of a source.
func (e expectation) sized(n int64) error {
	switch {
	case e.size == nil || n == *e.size:
		return nil
	case n < *e.size:
		return fmt.Errorf("%w: it has %d bytes, not %d", ErrTruncated, n, *e.size)
	}
	return fmt.Errorf("%w: the source has more than the expected %d bytes", session.ErrInvalid, *e.size)
}

// exceeded checks a source that has n bytes or more.
func (e expectation) exceeded(n int64) error {
	if e.size == nil || n <= *e.size {
		return nil
	}
	return e.sized(n)
}

// ended checks a source of n bytes before the request that publishes the object.
func (e expectation) ended(ctx context.Context, n int64) error {
	if err := e.sized(n); err != nil {
		return err
	}
	if e.confirm == nil {
		return nil
	}
	if err := e.confirm(ctx); err != nil {
		return fmt.Errorf("the source is not confirmed: %w", err)
	}
	return nil
}

// reader returns r with an error at its end if that is not at the expected size. It
// is for a source whose size is not that of the object.
func (e expectation) reader(r io.Reader) io.Reader {
	if e.size == nil {
		return r
	}
	return &sizedReader{r: r, expect: e}
}

type sizedReader struct {
	r      io.Reader
	n      int64
	expect expectation
}

func (s *sizedReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	wrong := s.expect.exceeded(s.n)
	if err == io.EOF {
		wrong = s.expect.sized(s.n)
	}
	if wrong != nil {
		return 0, wrong
	}
	return n, err
}

// SetReadDeadline ends a Read that is under way, if r can.
func (s *sizedReader) SetReadDeadline(t time.Time) error {
	if d, ok := s.r.(interface{ SetReadDeadline(time.Time) error }); ok {
		return d.SetReadDeadline(t)
	}
	return errors.ErrUnsupported
}
