package blob

import (
	"hash/crc32"
	"testing"
)

func TestCombineCRC(t *testing.T) {
	p := make([]byte, 2*Granularity+1)
	for i := range p {
		p[i] = byte(i * i >> 3)
	}
	whole := crc32.Checksum(p, castagnoli)
	for _, n := range []int{0, 1, Granularity - 1, Granularity, Granularity + 1, 2 * Granularity, len(p)} {
		a, b := crc32.Checksum(p[:n], castagnoli), crc32.Checksum(p[n:], castagnoli)
		if got := CombineCRC(a, b, int64(len(p)-n)); got != whole {
			t.Errorf("split at %d: %08x, want %08x", n, got, whole)
		}
	}
}
