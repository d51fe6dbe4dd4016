package chunk

import (
	"errors"
	"io"
)

// Lender is a reader that can lend its memory, so that its bytes need not be copied.
// [Body] and the readers of streams are Lenders.
type Lender interface {
	io.Reader

	// Lend returns the next bytes, at most max. It waits like Read, and the bytes count as
	// read. They are valid until the next call of a method, and must not be changed. Either
	// there are bytes, or the error is not nil. If the error wraps [errors.ErrUnsupported],
	// nothing was read, and Read must be used.
	Lend(max int) ([]byte, error)
}

// Lend calls the method of r. The error is [errors.ErrUnsupported] if r is not a [Lender].
func Lend(r io.Reader, max int) ([]byte, error) {
	if l, ok := r.(Lender); ok {
		return l.Lend(max)
	}
	return nil, errors.ErrUnsupported
}
