package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gcsup/internal/checksum"
	"gcsup/session"
)

// ErrTruncated means that a source ended before the expected size.
var ErrTruncated = errors.New("source is shorter than expected")

// Expectation has the caller's checks of a source: its size, and the confirmation of
// its end.
type Expectation struct {
	Size    *int64                      // nil if the caller does not know it
	Confirm func(context.Context) error // nil if there is nothing to confirm
}

// Once returns the expectation for one upload. It calls the caller's
// function only once.
func (e Expectation) Once() Expectation {
	confirm := e.Confirm
	if confirm == nil {
		return e
	}
	var called bool
	var result error
	e.Confirm = func(ctx context.Context) error {
		if !called {
			called, result = true, confirm(ctx)
		}
		return result
	}
	return e
}

// Sized checks the size of a source.
func (e Expectation) Sized(n int64) error {
	switch {
	case e.Size == nil || n == *e.Size:
		return nil
	case n < *e.Size:
		return fmt.Errorf("%w: it has %d bytes, not %d", ErrTruncated, n, *e.Size)
	}
	return fmt.Errorf("%w: the source has more than the expected %d bytes", session.ErrInvalid, *e.Size)
}

// exceeded checks a source that has n bytes or more.
func (e Expectation) exceeded(n int64) error {
	if e.Size == nil || n <= *e.Size {
		return nil
	}
	return e.Sized(n)
}

// CheckEnd checks a source of n bytes before the request that publishes the object.
func (e Expectation) CheckEnd(ctx context.Context, n int64) error {
	if err := e.Sized(n); err != nil {
		return err
	}
	if e.Confirm == nil {
		return nil
	}
	if err := e.Confirm(ctx); err != nil {
		return fmt.Errorf("the source is not confirmed: %w", err)
	}
	return nil
}

// Reader returns a reader of r that fails at the end of r if r does not have the
// expected size. It is for sources whose size differs from that of the object.
func (e Expectation) Reader(r io.Reader) io.Reader {
	if e.Size == nil {
		return r
	}
	return &sizedReader{r: r, expect: e}
}

type sizedReader struct {
	r      io.Reader
	n      int64
	expect Expectation
}

func (s *sizedReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	wrong := s.expect.exceeded(s.n)
	if err == io.EOF {
		wrong = s.expect.Sized(s.n)
	}
	if wrong != nil {
		return 0, wrong
	}
	return n, err
}

// SetReadDeadline interrupts a Read, if r supports it.
func (s *sizedReader) SetReadDeadline(t time.Time) error {
	if d, ok := s.r.(interface{ SetReadDeadline(time.Time) error }); ok {
		return d.SetReadDeadline(t)
	}
	return errors.ErrUnsupported
}

// UnexpectedBytes is the error for a source that does not have the CRC32C that the
// caller expects. The session is still open.
type UnexpectedBytes struct{ error }

func (e *UnexpectedBytes) Unwrap() error { return e.error }

// ExpectCRC32C compares the CRC32C of the source with the one that the caller expects. It
// must be called before the last request is sent.
func ExpectCRC32C(spec session.Spec, crc32c uint32) error {
	want := spec.CRC32C
	if want == nil || *want == crc32c {
		return nil
	}
	return &UnexpectedBytes{fmt.Errorf("%w: the source has crc32c %s, expected is %s",
		session.ErrChecksum, checksum.Encode(crc32c), checksum.Encode(*want))}
}
