// Package lend is for readers that lend their memory, so that their bytes need not be copied.
package lend

import (
	"errors"
	"io"
)

// Reader is a reader that can lend its memory. The bodies of package chunk and the readers of
// streams are Readers.
type Reader interface {
	io.Reader

	// Lend returns the next bytes, at most max. It waits like Read, and the bytes count as
	// read. They are valid until the next call of a method, and must not be changed. Either
	// there are bytes, or the error is not nil. If the error wraps [errors.ErrUnsupported],
	// nothing was read, and Read must be used.
	Lend(max int) ([]byte, error)
}

// Bytes calls Lend of r. The error is [errors.ErrUnsupported] if r is not a [Reader].
func Bytes(r io.Reader, max int) ([]byte, error) {
	if l, ok := r.(Reader); ok {
		return l.Lend(max)
	}
	return nil, errors.ErrUnsupported
}
