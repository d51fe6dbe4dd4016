package chunk_test

import (
	"strings"
	"testing"

	"gcsup/chunk"
)

func TestUpdate(t *testing.T) {
	// RFC 3720, appendix B.4, and the check value of the CRC catalogue.
	ascending := make([]byte, 32)
	for i := range ascending {
		ascending[i] = byte(i)
	}
	for _, test := range []struct {
		in   []byte
		want uint32
	}{
		{nil, 0},
		{[]byte("123456789"), 0xe3069283},
		{make([]byte, 32), 0x8a9136aa},
		{ascending, 0x46dd794e},
	} {
		if got := chunk.Update(0, test.in); got != test.want {
			t.Errorf("Update(0, %x) = %08x, want %08x", test.in, got, test.want)
		}
		half := len(test.in) / 2
		if got := chunk.Update(chunk.Update(0, test.in[:half]), test.in[half:]); got != test.want {
			t.Errorf("Update of %x in two steps = %08x, want %08x", test.in, got, test.want)
		}
	}
}

func TestCombine(t *testing.T) {
	data := content(4 * q)
	lengths := append([]int64{2, 3, 7, 8, 9, 255, 256}, sizes...)
	for _, len1 := range lengths {
		for _, len2 := range lengths {
			a, b := data[:len1], data[len1:len1+len2]
			if got, want := chunk.Combine(crcOf(a), crcOf(b), len2), crcOf(data[:len1+len2]); got != want {
				t.Errorf("Combine of %d and %d bytes = %08x, want %08x", len1, len2, got, want)
			}
		}
	}
}

// TestCombineLong checks that Combine is associative, with lengths that are too
// long to hash in a test.
func TestCombineLong(t *testing.T) {
	const n = 5<<40 + 12345 // 5 TiB, the largest object
	a, b := uint32(0x12345678), uint32(0x9abcdef0)
	want := chunk.Combine(a, b, n)
	for _, cut := range []int64{1, q, n / 2, n - 1} {
		// b is the CRC32C of n bytes: zeros up to cut, then bytes with the
		// CRC32C c.
		zeroed := chunk.Combine(0, 0, cut)
		if zeroed != 0 {
			t.Fatalf("Combine(0, 0, %d) = %08x, want 0", cut, zeroed)
		}
		moved := chunk.Combine(a, 0, cut)
		if got := chunk.Combine(moved, b, n-cut); got != want {
			t.Errorf("in two steps of %d and %d bytes: %08x, want %08x", cut, n-cut, got, want)
		}
	}
	if !panics(func() { chunk.Combine(a, b, -1) }) {
		t.Error("Combine with a negative length: no panic")
	}
}

func TestCRC32CText(t *testing.T) {
	for _, test := range []struct {
		crc  uint32
		text string
	}{
		{0, "AAAAAA=="},
		{0xe3069283, "4waSgw=="},
		{0xffffffff, "/////w=="},
	} {
		if got := chunk.EncodeCRC32C(test.crc); got != test.text {
			t.Errorf("EncodeCRC32C(%08x) = %q, want %q", test.crc, got, test.text)
		}
		if got, err := chunk.DecodeCRC32C(test.text); err != nil || got != test.crc {
			t.Errorf("DecodeCRC32C(%q) = %08x, %v, want %08x", test.text, got, err, test.crc)
		}
	}
	for _, bad := range []string{
		"", "AAAA", "AAAAAA", "AAAAAAA=", "AAAAAAAA", "AAAAAA==\n", "AAAA\nAA==", "AAAAAA=\n",
		"AAAAAB==", // the last four bits must be 0
		"_____w==", // the URL alphabet
		"e3069283", // hexadecimal, which has eight characters too
		strings.Repeat("A", 1<<20),
	} {
		got, err := chunk.DecodeCRC32C(bad)
		if err == nil {
			t.Errorf("DecodeCRC32C(%.20q) = %08x, want an error", bad, got)
		} else if len(err.Error()) > 200 {
			t.Errorf("the error repeats %d bytes of input", len(err.Error()))
		}
	}
}

func FuzzDecodeCRC32C(f *testing.F) {
	for _, s := range []string{"AAAAAA==", "4waSgw==", "AAAA\nAA==", "", "AAAAAB=="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if crc, err := chunk.DecodeCRC32C(s); err == nil && chunk.EncodeCRC32C(crc) != s {
			t.Errorf("DecodeCRC32C(%q) = %08x, which EncodeCRC32C encodes as %q", s, crc, chunk.EncodeCRC32C(crc))
		}
	})
}

func FuzzCombine(f *testing.F) {
	f.Add([]byte("hello, "), []byte("world"))
	f.Add([]byte{}, []byte{0})
	f.Add([]byte{0}, []byte{})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		got := chunk.Combine(crcOf(a), crcOf(b), int64(len(b)))
		if want := crcOf(append(a[:len(a):len(a)], b...)); got != want {
			t.Errorf("Combine(%x, %x) = %08x, want %08x", a, b, got, want)
		}
	})
}
