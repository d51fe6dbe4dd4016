package fakegcstest

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
)

// hashOf returns a hash of p in the format of the API.
func hashOf(kind string, p []byte) string {
	sum := md5.Sum(p)
	switch kind {
	case "md5":
		return base64.StdEncoding.EncodeToString(sum[:])
	case "md5hex":
		return hex.EncodeToString(sum[:])
	}
	crc := crc32.Checksum(p, crc32.MakeTable(crc32.Castagnoli))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc))
}
