package upload

import "gcsup/chunk"

const (
	// defaultMinPart is the default minimum size of a part. The requests of a smaller part
	// cost more than a further connection gains.
	defaultMinPart = 8 << 20

	// partsPerConnection is how many parts each connection gets if the file is large
	// enough. With several, a slow connection does not delay the end of the upload.
	partsPerConnection = 4

	// maxParts bounds the parts of InParts and AutoParts for each file, and thereby the
	// size of its Token. A multipart upload may have more, see multipartSize.
	maxParts = 1024

	// maxConnections bounds the connections of InParts.
	maxConnections = 256
)

// partSize returns the size of the parts of a file of size bytes that is sent over a
// number of connections. It is a multiple of chunk.Granularity and at least minPart, or 0
// if the file would be a single part.
func partSize(size int64, connections int, minPart int64) int64 {
	if connections < 2 || minPart >= size {
		return 0
	}
	n := min(int64(connections)*partsPerConnection, maxParts)
	part := chunk.Ceil(max((size+n-1)/n, minPart, 1))
	if part >= size {
		return 0
	}
	return part
}
