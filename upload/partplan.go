package upload

import "gcsup/chunk"

const (
	// minPart is the least size of a part: a smaller one costs more than it gains.
	minPart = 8 << 20

	// partsPerConnection is how many parts each connection gets if the file is large
	// enough, so that a slow one does not delay the end.
	partsPerConnection = 4

	// maxParts bounds the parts of a file, and so the size of its Token.
	maxParts = 1024

	// maxConnections bounds the connections of InParts.
	maxConnections = 256
)

// partSize returns the size of the parts of a file of size bytes that is sent over a
// number of connections: a multiple of chunk.Granularity, but at least least. It
// returns 0 if the file would be a single part.
func partSize(size int64, connections int, least int64) int64 {
	if connections < 2 || least >= size {
		return 0
	}
	n := min(int64(connections)*partsPerConnection, maxParts)
	part := chunk.Ceil(max((size+n-1)/n, least, 1))
	if part >= size {
		return 0
	}
	return part
}
