// Package checksum computes CRC32C, the checksum with which Cloud Storage checks objects.
package checksum

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Update returns the CRC32C of a byte sequence followed by p, from the CRC32C
// of the sequence. The CRC32C of no bytes is 0.
func Update(crc uint32, p []byte) uint32 {
	// MakeTable returns a shared table for this polynomial. With that table,
	// Update uses the CPU's CRC32 instruction.
	return crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), p)
}

// Combine returns the CRC32C of two byte sequences that follow each other. It needs
// the CRC32C of both, and the length in bytes of the second. It takes time
// proportional to the logarithm of len2. It panics if len2 is negative.
func Combine(crc1, crc2 uint32, len2 int64) uint32 {
	if len2 < 0 {
		panic(fmt.Sprintf("checksum: Combine: negative length %d", len2))
	}
	// Appending n zero bytes multiplies a checksum, as a polynomial over GF(2),
	// by x^8n modulo the generator; the inversions before and after cancel each
	// other. This is zlib's crc32_combine:
	// https://github.com/madler/zlib/blob/master/crc32.c
	shift := uint32(one)
	power := uint32(one >> 8) // x^8: one byte
	for n := uint64(len2); n != 0; n >>= 1 {
		if n&1 != 0 {
			shift = multiply(shift, power)
		}
		power = multiply(power, power)
	}
	return multiply(shift, crc1) ^ crc2
}

// one is the polynomial 1 in the bit order of reflected CRCs: x^0 is the
// highest bit, and a shift to the right is a multiplication by x.
const one = 1 << 31

// multiply returns a*b modulo the Castagnoli polynomial, all three reflected.
func multiply(a, b uint32) uint32 {
	var product uint32
	for bit := uint32(one); a != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
			a ^= bit
		}
		// Multiply b by x, without a branch.
		b = b>>1 ^ crc32.Castagnoli&-(b&1)
	}
	return product
}

// Encode returns crc in the format of the API: the four bytes in
// big-endian order, in base64.
//
// https://cloud.google.com/storage/docs/data-validation
func Encode(crc uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc))
}

// Decode parses the format of [Encode]. It returns an error for any
// other text.
func Decode(s string) (uint32, error) {
	// Check the length first, because a base64 decoder skips line breaks.
	if len(s) == 8 {
		if b, err := base64.StdEncoding.Strict().DecodeString(s); err == nil && len(b) == 4 {
			return binary.BigEndian.Uint32(b), nil
		}
	}
	return 0, fmt.Errorf("crc32c: %.20q is not four bytes in base64, such as %q", s, "AAAAAA==")
}
