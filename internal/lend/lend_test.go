package lend_test

import (
	"errors"
	"strings"
	"testing"

	"gcsup/internal/lend"
)

// TestBytesOfAReader checks that a reader that lends nothing is not read.
func TestBytesOfAReader(t *testing.T) {
	r := strings.NewReader("x")
	if _, err := lend.Bytes(r, 1); !errors.Is(err, errors.ErrUnsupported) || r.Len() != 1 {
		t.Errorf("the error is %v, and %d bytes are left; want %v, 1", err, r.Len(), errors.ErrUnsupported)
	}
}
