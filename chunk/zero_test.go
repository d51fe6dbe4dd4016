package chunk_test

import (
	"errors"
	"io"
	"testing"

	"gcsup/chunk"
)

// TestZeroValues checks that the zero value of each type works as documented.
func TestZeroValues(t *testing.T) {
	var sum chunk.PrefixCRC
	if _, err := sum.Write([]byte("123456789")); err != nil || sum.Sum() != 0xE3069283 || sum.Offset() != 9 {
		t.Errorf("zero PrefixCRC: CRC32C %#x at offset %d, error %v", sum.Sum(), sum.Offset(), err)
	}
	if at, ok := sum.Nearest(0); !ok || at != (chunk.Checkpoint{}) {
		t.Errorf("zero PrefixCRC: Nearest(0) = %v, %v, want the start", at, ok)
	}

	var src chunk.Source
	if _, err := src.Identity(); err != nil || src.Size() != 0 {
		t.Errorf("zero Source: size %d, error %v", src.Size(), err)
	}
	if at, err := src.Hash(t.Context(), chunk.Checkpoint{}, 0); err != nil || at != (chunk.Checkpoint{}) {
		t.Errorf("zero Source: Hash = %v, %v", at, err)
	}
	for name, body := range map[string]*chunk.Body{"of the zero Source": src.Body(chunk.Range{}, nil), "zero": new(chunk.Body)} {
		data, err := io.ReadAll(body)
		if len(data) != 0 || err != nil || body.Err() != nil {
			t.Errorf("Body (%s): %d bytes, error %v, Err %v", name, len(data), err, body.Err())
		}
		if err := errors.Join(body.Close(), body.Close()); err != nil {
			t.Errorf("Body (%s): Close: %v", name, err)
		}
	}
	if err := src.Close(); err != nil {
		t.Errorf("zero Source: Close: %v", err)
	}
}
