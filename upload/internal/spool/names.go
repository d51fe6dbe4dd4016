package spool

import (
	"fmt"
	"strconv"
	"strings"

	"gcsup/chunk"
)

const (
	segmentSuffix = ".bytes"
	endName       = "end.json"
	endTemp       = "end.tmp"
)

// segmentName returns the name of the segment that starts at c.
func segmentName(c chunk.Checkpoint) string {
	return fmt.Sprintf("%020d-%08x%s", c.Offset, c.CRC32C, segmentSuffix)
}

// parseSegment returns the start of the segment with a name. ok is false for other files.
func parseSegment(name string) (start chunk.Checkpoint, ok bool) {
	base, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok {
		return start, false
	}
	offset, sum, _ := strings.Cut(base, "-")
	at, err := strconv.ParseInt(offset, 10, 64)
	if err != nil {
		return start, false
	}
	crc, err := strconv.ParseUint(sum, 16, 32)
	if err != nil {
		return start, false
	}
	start = chunk.Checkpoint{Offset: at, CRC32C: uint32(crc)}
	return start, at >= 0 && segmentName(start) == name
}
