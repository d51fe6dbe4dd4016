package parts

import (
	"math"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/multipart"
	"gcsup/upload/internal/connections"
)

// TestAutoSizes checks the sizes of parts that Options.Auto chooses.
func TestAutoSizes(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	o := Options{Connections: connections.Max, Min: AutoMin, Auto: true, MinFile: AutoMinFile}
	for _, test := range []struct{ size, composed, multipart int64 }{
		{150*mib - 1, 0, 0},
		{150 * mib, 5 * mib, 5 * mib},
		{256 * mib, 8 * mib, 5 * mib},
		{512 * mib, 16 * mib, 5 * mib},
		{1024 * mib, 32 * mib, 5 * mib},
		{16384 * mib, 128 * mib, 5 * mib},
		{50_000 * mib, chunk.Ceil(50_000 * mib / 128), 5 * mib},            // 10,000 parts; docs/explain/parallel.md has the size
		{200_000_000_000, chunk.Ceil(200_000_000_000 / 128), 77 * mib / 4}, // the same
	} {
		composed, multi := o.Size(test.size), int64(0)
		if composed > 0 {
			multi = multipartSize(test.size, composed, autoMultipart)
		}
		if composed != test.composed || multi != test.multipart {
			t.Errorf("%d bytes: parts of %d and %d, want %d and %d", test.size, composed, multi, test.composed, test.multipart)
		}
	}
}

// The service accepts every division of a file, up to the largest object and with the largest
// options.
func TestPartSizes(t *testing.T) {
	t.Parallel()
	const maxObject = 5 << 40 // https://cloud.google.com/storage/quotas#objects
	for _, size := range []int64{1, chunk.Granularity, DefaultMin, DefaultMin + 1, 1 << 30, 40 << 30, maxObject - 1, maxObject} {
		for _, n := range []int{0, 1, 2, 8, connections.Max} {
			for _, minPart := range []int64{1, DefaultMin, 6 << 30, maxObject, math.MaxInt64} {
				for name, p := range map[string]Options{
					"fixed": {Connections: n, Min: minPart},
					"auto":  {Connections: n, Min: AutoMin, Auto: true, MinFile: AutoMinFile},
				} {
					part := p.Size(size)
					if part == 0 {
						continue
					}
					if part < 0 || part >= size || part%chunk.Granularity != 0 || (size+part-1)/part > most {
						t.Errorf("%s: %d bytes over %d connections, at least %d: parts of %d", name, size, n, minPart, part)
					}
					for _, share := range []int64{0, 1, 16 << 20, math.MaxInt64} {
						part := multipartSize(size, part, share)
						if part < multipart.MinPart || part > multipart.MaxPart || part%chunk.Granularity != 0 || (size+part-1)/part > multipart.MaxParts {
							t.Errorf("%s: %d bytes over %d connections, at least %d, with %d bytes of memory: parts of %d", name, size, n, minPart, share, part)
						}
					}
				}
			}
		}
	}
}

// TestStreamPartsOverlap checks that the parts of a long stream in several multipart uploads leave memory for the next
// ones: the sender of a part that has all the memory would wait for its source, and the source for the sender.
func TestStreamPartsOverlap(t *testing.T) {
	for _, share := range []int64{15 << 20, 28 << 20, 112 << 20} {
		o := Options{Connections: 64}
		base := o.streamBase(share)
		for offset := int64(0); offset < MaxObject; offset = 2*offset + 1<<30 {
			if size := streamPart(base, offset, overlapping(share)); size > max(share/4, base) || 2*size > share {
				t.Errorf("a part at %d has %d bytes of a share of %d", offset, size, share)
			}
		}
	}
}
