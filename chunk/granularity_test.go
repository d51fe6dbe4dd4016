package chunk_test

import (
	"math"
	"testing"

	"gcsup/chunk"
)

func TestBoundaries(t *testing.T) {
	const top = math.MaxInt64 / q * q
	for _, test := range []struct{ n, floor, ceil, last int64 }{
		{0, 0, 0, 0},
		{1, 0, q, 0},
		{q - 1, 0, q, 0},
		{q, q, q, 0},
		{q + 1, q, 2 * q, q},
		{2*q - 1, q, 2 * q, q},
		{2 * q, 2 * q, 2 * q, q},
		{2*q + 1, 2 * q, 3 * q, 2 * q},
		{5 << 40, 5 << 40, 5 << 40, 5<<40 - q},
		{top, top, top, top - q},
	} {
		if got := chunk.Floor(test.n); got != test.floor {
			t.Errorf("Floor(%d) = %d, want %d", test.n, got, test.floor)
		}
		if got := chunk.Ceil(test.n); got != test.ceil {
			t.Errorf("Ceil(%d) = %d, want %d", test.n, got, test.ceil)
		}
		if got := chunk.LastBoundary(test.n); got != test.last {
			t.Errorf("LastBoundary(%d) = %d, want %d", test.n, got, test.last)
		}
	}
}

func TestRange(t *testing.T) {
	r := chunk.Range{From: q, To: 3 * q}
	if got := r.Len(); got != 2*q {
		t.Errorf("Len = %d, want %d", got, 2*q)
	}
	if got := r.String(); got != "[262144,786432)" {
		t.Errorf("String = %q", got)
	}
}
