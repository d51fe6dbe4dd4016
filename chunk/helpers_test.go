package chunk_test

import (
	"hash/crc32"
	"math/rand/v2"

	"gcsup/chunk"
)

const q = chunk.Granularity

// sizes lists the edge cases around multiples of Granularity.
var sizes = []int64{0, 1, q - 1, q, q + 1, 2 * q}

// content returns n bytes, the same in every run.
func content(n int64) []byte {
	b := make([]byte, n)
	src := rand.NewChaCha8([32]byte{1})
	src.Read(b)
	return b
}

// crcOf returns the CRC32C of data, computed by one call of the standard
// library.
func crcOf(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func panics(call func()) (did bool) {
	defer func() { did = recover() != nil }()
	call()
	return
}
