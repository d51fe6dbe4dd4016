package checksum_test

import (
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"testing"

	"gcsup/internal/checksum"
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
		if got := checksum.Update(0, test.in); got != test.want {
			t.Errorf("Update(0, %x) = %08x, want %08x", test.in, got, test.want)
		}
		half := len(test.in) / 2
		if got := checksum.Update(checksum.Update(0, test.in[:half]), test.in[half:]); got != test.want {
			t.Errorf("Update of %x in two steps = %08x, want %08x", test.in, got, test.want)
		}
	}
}

func TestCombine(t *testing.T) {
	data := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(data)
	lengths := []int64{0, 1, 2, 3, 7, 8, 9, 255, 256, 1<<18 - 1, 1 << 18, 1<<18 + 1, 1 << 19}
	for _, len1 := range lengths {
		for _, len2 := range lengths {
			a, b := data[:len1], data[len1:len1+len2]
			if got, want := checksum.Combine(crcOf(a), crcOf(b), len2), crcOf(data[:len1+len2]); got != want {
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
	want := checksum.Combine(a, b, n)
	for _, cut := range []int64{1, 1 << 18, n / 2, n - 1} {
		// b is the CRC32C of n bytes: zeros up to cut, then bytes with the
		// CRC32C c.
		zeroed := checksum.Combine(0, 0, cut)
		if zeroed != 0 {
			t.Fatalf("Combine(0, 0, %d) = %08x, want 0", cut, zeroed)
		}
		moved := checksum.Combine(a, 0, cut)
		if got := checksum.Combine(moved, b, n-cut); got != want {
			t.Errorf("in two steps of %d and %d bytes: %08x, want %08x", cut, n-cut, got, want)
		}
	}
	if !panics(func() { checksum.Combine(a, b, -1) }) {
		t.Error("Combine with a negative length: no panic")
	}
}

func TestText(t *testing.T) {
	for _, test := range []struct {
		crc  uint32
		text string
	}{
		{0, "AAAAAA=="},
		{0xe3069283, "4waSgw=="},
		{0xffffffff, "/////w=="},
	} {
		if got := checksum.Encode(test.crc); got != test.text {
			t.Errorf("Encode(%08x) = %q, want %q", test.crc, got, test.text)
		}
		if got, err := checksum.Decode(test.text); err != nil || got != test.crc {
			t.Errorf("Decode(%q) = %08x, %v, want %08x", test.text, got, err, test.crc)
		}
	}
	for _, bad := range []string{
		"", "AAAA", "AAAAAA", "AAAAAAA=", "AAAAAAAA", "AAAAAA==\n", "AAAA\nAA==", "AAAAAA=\n",
		"AAAAAB==", // the last four bits must be 0
		"_____w==", // the URL alphabet
		"e3069283", // hexadecimal, which has eight characters too
		strings.Repeat("A", 1<<20),
	} {
		got, err := checksum.Decode(bad)
		if err == nil {
			t.Errorf("Decode(%.20q) = %08x, want an error", bad, got)
		} else if len(err.Error()) > 200 {
			t.Errorf("the error repeats %d bytes of input", len(err.Error()))
		}
	}
}

// crcOf is the CRC32C of the standard library.
func crcOf(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

func BenchmarkCombine(b *testing.B) {
	for b.Loop() {
		checksum.Combine(0x12345678, 0x9abcdef0, 5<<40-1)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"AAAAAA==", "4waSgw==", "AAAA\nAA==", "", "AAAAAB=="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if crc, err := checksum.Decode(s); err == nil && checksum.Encode(crc) != s {
			t.Errorf("Decode(%q) = %08x, which Encode encodes as %q", s, crc, checksum.Encode(crc))
		}
	})
}

func FuzzCombine(f *testing.F) {
	f.Add([]byte("hello, "), []byte("world"))
	f.Add([]byte{}, []byte{0})
	f.Add([]byte{0}, []byte{})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		got := checksum.Combine(crcOf(a), crcOf(b), int64(len(b)))
		if want := crcOf(append(a[:len(a):len(a)], b...)); got != want {
			t.Errorf("Combine(%x, %x) = %08x, want %08x", a, b, got, want)
		}
	})
}
