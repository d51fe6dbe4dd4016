package parts

import (
	"math"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/multipart"
	"gcsup/upload/internal/atrisk"
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
	for _, size := range []int64{1, chunk.Granularity, DefaultMin, DefaultMin + 1, 1 << 30, 40 << 30, multipart.MaxParts<<24 + 1, maxObject - 1, maxObject} {
		for _, n := range []int{0, 1, 2, 8, connections.Max} {
			for _, minPart := range []int64{1, DefaultMin - 1, DefaultMin, 6 << 30, maxObject, math.MaxInt64} {
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

// TestPartsOfOneByteMore checks that there are not more parts than intended if the size is not divisible.
func TestPartsOfOneByteMore(t *testing.T) {
	if got := (Options{Connections: 2, Min: 1}).Size(2*perConnection*chunk.Granularity + 1); got != 2*chunk.Granularity {
		t.Errorf("parts of %d bytes", got)
	}
}

// TestPartsWithoutLimit checks that no limit of the memory does not make parts small.
func TestPartsWithoutLimit(t *testing.T) {
	if got := multipartSize(1<<30, 16<<20, 0); got != 16<<20 {
		t.Errorf("parts of %d bytes", got)
	}
	if got := streamPart(16<<20, 1<<40, 0); got < 32<<20 {
		t.Errorf("parts of a stream of %d bytes", got)
	}
}

// TestRiskyParts checks that the parts of a multipart upload may be as large as what may be at risk.
func TestRiskyParts(t *testing.T) {
	for extra, want := range map[int64]bool{0: false, multipart.MaxParts: true} {
		if got := (Options{Auto: true}).risky(multipart.MaxParts*atrisk.Least + extra); got != want {
			t.Errorf("%d bytes more: risky %v", extra, got)
		}
	}
}

// TestZippedPartsHold checks that the parts of a compressed file hold all bytes that it may have, even if it is resumed
// with less memory, and that they have more than the memory only if they must.
func TestZippedPartsHold(t *testing.T) {
	t.Parallel()
	for _, budget := range []int64{7 << 20, 14 << 20, 112 << 20, 0} {
		for _, most := range []int64{1, 6 << 20, 1 << 30, 49 << 30, 130 << 30, 500 << 30, 1 << 40, MaxObject} {
			largest := max(chunk.Floor(budget), multipart.MinPart, chunk.Ceil((most+multipart.MaxParts-1)/multipart.MaxParts))
			if budget == 0 {
				largest = multipart.MaxPart
			}
			offset := int64(0)
			for n := multipart.MaxParts; n > 0 && offset < most; n-- {
				size := max(chunk.Ceil(zippedPart(offset, most-offset, n, budget)), multipart.MinPart)
				if size > largest {
					t.Fatalf("memory of %d: a part at %d of %d has %d bytes, want at most %d", budget, offset, most, size, largest)
				}
				offset += size
			}
			if offset < most {
				t.Errorf("memory of %d: the parts of %d bytes hold %d", budget, most, offset)
			}
		}
	}
	most, budget := Options{Connections: 4}.StreamLimit(112<<20, 112<<20), int64(112<<20)
	for n, offset := multipart.MaxParts, int64(0); n > 0; n-- {
		size, want := max(chunk.Ceil(zippedPart(offset, most-offset, n, budget)), multipart.MinPart), streamPart(multipart.MinPart, offset, budget)
		if size != want {
			t.Fatalf("a part at %d has %d bytes, want %d: the parts of a stream hold the file", offset, size, want)
		}
		offset += size
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

// TestSpooledPartSizes checks that the service accepts the parts of a stream in any spool, that each fits in the
// spool with the segments around it, and that they hold the largest object in the default spool and in larger ones.
func TestSpooledPartSizes(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{streamConnections * multipart.MinPart, 64 << 20, 512 << 20, 1 << 30, 100 << 30} {
		for _, o := range []Options{{Connections: 2, Min: DefaultMin}, {Connections: 256, Min: 1 << 30}, {Connections: connections.Max, Min: AutoMin, Auto: true}} {
			base, n := o.streamBase(limit), int64(0)
			for range multipart.MaxParts {
				size := spooledPart(base, n, limit)
				if size < multipart.MinPart || size > multipart.MaxPart || size%chunk.Granularity != 0 || size > limit/4*3 {
					t.Fatalf("%+v: a part of %d bytes at %d in a spool of %d", o, size, n, limit)
				}
				n += size
			}
			if n != o.SpoolLimit(limit) || limit >= 1<<30 && n < MaxObject {
				t.Errorf("%+v: 10,000 parts hold %d bytes in a spool of %d", o, n, limit)
			}
		}
	}
}
