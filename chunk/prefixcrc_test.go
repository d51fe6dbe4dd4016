package chunk_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"gcsup/chunk"
	"gcsup/internal/testsize"
)

// at is the checkpoint of data at offset.
func at(data []byte, offset int64) chunk.Checkpoint {
	return chunk.Checkpoint{Offset: offset, CRC32C: crcOf(data[:offset])}
}

func write(t *testing.T, r *chunk.PrefixCRC, data []byte) {
	t.Helper()
	for len(data) > 0 {
		n, err := r.Write(data[:min(len(data), 100_000)])
		if err != nil {
			t.Fatalf("Write at %d = %v", r.Offset(), err)
		}
		data = data[n:]
	}
}

func TestPrefixCRCRewind(t *testing.T) {
	data := content(4 * q)
	for _, test := range []struct {
		base, to, offset, want int64
	}{
		{0, 0, 0, 0},
		{0, 1, 0, 0},
		{0, 1, 1, 1}, // the end of the hashed bytes is stored too
		{0, q - 1, q - 2, 0},
		{0, q, q - 1, 0},
		{0, q, q, q},
		{0, q, 2 * q, q},
		{0, q + 1, q, q},
		{0, 3*q + 5, 3*q + 4, 3 * q},
		{0, 3*q + 5, 3*q + 5, 3*q + 5},
		{0, 3*q + 5, 2*q + 1, 2 * q},
		{0, 3*q + 5, 1, 0},
		{q + 1, q + 1, 4 * q, q + 1},
		{q + 1, 3 * q, 2*q - 1, q + 1},
		{q + 1, 3 * q, 2 * q, 2 * q},
		{q + 1, 3 * q, q, q + 1}, // no position before the base
		{2 * q, 4 * q, 0, 2 * q},
		{2 * q, 4 * q, 3*q + 1, 3 * q},
	} {
		r := chunk.NewPrefixCRC(at(data, test.base))
		write(t, r, data[test.base:test.to])
		near, ok := r.Nearest(test.offset)
		if wantOK := test.offset >= test.base; ok != wantOK || ok && near != at(data, test.want) {
			t.Errorf("%v: Nearest = %v, %v, want %v, %v", test, near, ok, at(data, test.want), wantOK)
		}
		if r.Offset() != test.to {
			t.Errorf("%v: Nearest moved to %d", test, r.Offset())
		}
		if got := r.Rewind(test.offset); got != at(data, test.want) {
			t.Errorf("%v: Rewind = %v, want %v", test, got, at(data, test.want))
		}
		if r.Offset() != test.want || r.Sum() != crcOf(data[:test.want]) {
			t.Errorf("%v: after Rewind at %d, %08x", test, r.Offset(), r.Sum())
		}
		write(t, r, data[test.want:])
		if r.Sum() != crcOf(data) {
			t.Errorf("%v: after the second pass %08x, want %08x", test, r.Sum(), crcOf(data))
		}
	}
}

// TestPrefixCRCRewindForward checks that Rewind can step forward without
// reading after it stepped back too far, because the checksums are still
// stored.
func TestPrefixCRCRewindForward(t *testing.T) {
	data := content(4 * q)
	r := chunk.NewPrefixCRC(chunk.Checkpoint{})
	write(t, r, data[:3*q+5])
	r.Rewind(0)
	write(t, r, data[:10])
	// The bytes since the boundary are not compared yet in the second pass.
	if got, _ := r.Nearest(10); got != at(data, 0) {
		t.Errorf("Nearest(10) in the second pass = %v, want the beginning", got)
	}
	for _, test := range []struct{ offset, want int64 }{
		{2*q + 1, 2 * q}, {3*q + 4, 3 * q}, {4 * q, 3*q + 5}, {q, q}, {3*q + 5, 3*q + 5},
	} {
		if got := r.Rewind(test.offset); got != at(data, test.want) {
			t.Errorf("Rewind(%d) = %v, want %v", test.offset, got, at(data, test.want))
		}
	}
}

func TestPrefixCRCChanged(t *testing.T) {
	data := content(4 * q)
	for _, test := range []struct {
		name     string
		to, back int64 // first pass, then rewind
		edit     int64 // offset of the byte that differs in the second pass
		seenAt   int64 // offset at which Write fails; -1 if the first pass did not reach the byte
	}{
		{"first byte", 4 * q, 0, 0, q},
		{"last byte before a boundary", 4 * q, q, 2*q - 1, 2 * q},
		{"first byte after a boundary", 4 * q, q, 2 * q, 3 * q},
		{"in the rest after the last boundary", q + 5, q, q + 4, q + 5},
		{"in less than one granularity", 5, 0, 2, 5},
		{"after what was read", q + 5, 0, q + 5, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := chunk.NewPrefixCRC(chunk.Checkpoint{})
			write(t, r, data[:test.to])
			back := r.Rewind(test.back)
			edited := append([]byte(nil), data...)
			edited[test.edit] ^= 1
			n, err := r.Write(edited[back.Offset:])
			if test.seenAt < 0 {
				if err != nil {
					t.Fatalf("Write = %v, want nil", err)
				}
				return
			}
			if !errors.Is(err, chunk.ErrChanged) {
				t.Fatalf("Write = %v, want ErrChanged", err)
			}
			if got := back.Offset + int64(n); got != test.seenAt {
				t.Errorf("noticed at %d, want %d", got, test.seenAt)
			}
			r.Rewind(0)
			if _, again := r.Write(data[:1]); again != err {
				t.Errorf("later Write = %v, want the same error", again)
			}
			// Nearest returns a position of the first pass.
			if got, ok := r.Nearest(test.seenAt); !ok || got != at(data, test.seenAt) {
				t.Errorf("Nearest = %v, %v, want %v", got, ok, at(data, test.seenAt))
			}
		})
	}
}

func TestPrefixCRCForget(t *testing.T) {
	data := content(4 * q)
	for _, test := range []struct {
		base, to, rewind, forget int64
		earliest                 int64
	}{
		{0, 4 * q, 4 * q, 0, 0},
		{0, 4 * q, 4 * q, q - 1, 0},
		{0, 4 * q, 4 * q, q, q},
		{0, 4 * q, 4 * q, 2*q + 1, 2 * q},
		{0, 3*q + 1, 4 * q, 4 * q, 3*q + 1},
		{0, 4 * q, q + 1, 3 * q, q}, // never past the current position
		{q + 1, 4 * q, 4 * q, q, q + 1},
		{q + 1, 4 * q, 4 * q, 2 * q, 2 * q},
		{q + 1, 4 * q, 4 * q, 2*q - 1, q + 1},
	} {
		r := chunk.NewPrefixCRC(at(data, test.base))
		write(t, r, data[test.base:test.to])
		r.Rewind(test.rewind)
		r.Forget(test.forget)
		if _, ok := r.Nearest(test.earliest - 1); ok {
			t.Errorf("%v: a position before %d is still stored", test, test.earliest)
		}
		for offset := test.earliest; offset <= test.to; offset = chunk.Floor(offset) + q {
			if got, ok := r.Nearest(offset); !ok || got != at(data, offset) {
				t.Errorf("%v: Nearest(%d) = %v, %v, want %v", test, offset, got, ok, at(data, offset))
			}
		}
		if got := r.Rewind(test.earliest); got != at(data, test.earliest) {
			t.Errorf("%v: Rewind = %v, want %v", test, got, at(data, test.earliest))
		}
		write(t, r, data[test.earliest:])
		if r.Sum() != crcOf(data) {
			t.Errorf("%v: sum %08x, want %08x", test, r.Sum(), crcOf(data))
		}
	}
}

// TestPrefixCRCRandom compares a PrefixCRC with the simplest implementation,
// which hashes every prefix from the start.
func TestPrefixCRCRandom(t *testing.T) {
	seed := testsize.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	data := content(8 * q)
	prefix := map[int64]uint32{}
	crc := func(offset int64) uint32 {
		c, ok := prefix[offset]
		if !ok {
			c = crcOf(data[:offset])
			prefix[offset] = c
		}
		return c
	}
	for range 30 {
		base := rnd.Int64N(3 * q)
		r := chunk.NewPrefixCRC(at(data, base))
		forgotten := base
		for range 30 {
			switch rnd.IntN(4) {
			case 0, 1:
				n := min(rnd.Int64N(2*q), int64(len(data))-r.Offset())
				if _, err := r.Write(data[r.Offset() : r.Offset()+n]); err != nil {
					t.Fatal(err)
				}
			case 2:
				offset := forgotten + rnd.Int64N(int64(len(data))-forgotten+1)
				c := r.Rewind(offset)
				if c.Offset > offset || c.Offset < forgotten {
					t.Fatalf("Rewind(%d) = %v, base %d", offset, c, forgotten)
				}
			case 3:
				offset := rnd.Int64N(int64(len(data)))
				r.Forget(offset)
				if c, ok := r.Nearest(min(offset, r.Offset())); ok {
					forgotten = max(forgotten, c.Offset)
				}
			}
			if r.Sum() != crc(r.Offset()) {
				t.Fatalf("at %d: sum %08x, want %08x", r.Offset(), r.Sum(), crc(r.Offset()))
			}
		}
	}
}

// TestPrefixCRCForgetBoundsMemory checks that the memory of a long upload is
// constant if Forget is called with each committed offset.
func TestPrefixCRCForgetBoundsMemory(t *testing.T) {
	r := chunk.NewPrefixCRC(chunk.Checkpoint{})
	p := make([]byte, q)
	allocs := testing.AllocsPerRun(200, func() {
		r.Write(p)
		r.Forget(r.Offset() - 2*q)
	})
	if allocs > 1 { // append allocates a few words when it moves to a new array
		t.Errorf("%v allocations per 256 KiB, want at most 1", allocs)
	}
}

func TestPrefixCRCReadersBesideTheWriter(t *testing.T) {
	data := content(4 * q)
	r := chunk.NewPrefixCRC(chunk.Checkpoint{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for r.Offset() < int64(len(data)) {
				if c, ok := r.Nearest(2 * q); !ok || c.Offset > 2*q {
					t.Errorf("Nearest = %v, %v", c, ok)
					return
				}
				r.Sum()
			}
		})
	}
	for p := data; len(p) > 0; p = p[q/2:] {
		r.Write(p[:q/2])
		r.Forget(q)
	}
	wg.Wait()
}
