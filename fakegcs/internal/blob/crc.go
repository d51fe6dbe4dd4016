package blob

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CombineCRC returns the CRC32C of a followed by b, where b has n bytes. With it, the
// checksum of a composed object is computed without reading the object. Appending n
// bytes to a message multiplies its remainder by x^8n modulo the polynomial; repeated
// squaring finds the power. This is zlib's crc32_combine, with the polynomial in the
// reflected bit order of hash/crc32.
func CombineCRC(a, b uint32, n int64) uint32 {
	const one = 1 << 31  // the polynomial 1: bit 31 is x^0
	shift := uint32(one) // becomes x^8n
	power := uint32(one >> 8)
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			shift = multiplyCRC(shift, power)
		}
		power = multiplyCRC(power, power)
	}
	return multiplyCRC(a, shift) ^ b
}

// multiplyCRC multiplies two polynomials modulo the Castagnoli polynomial.
func multiplyCRC(a, b uint32) uint32 {
	var product uint32
	for bit := uint32(1 << 31); bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		low := b & 1
		b >>= 1
		if low != 0 {
			b ^= crc32.Castagnoli
		}
	}
	return product
}
