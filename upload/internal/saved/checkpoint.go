package saved

import (
	"slices"
	"time"

	"gcsup/chunk"
)

// The distance between saved checksums of a source is at most checkpointEvery, plus
// the bytes sent during a save. A resume reads no more than that again. The first
// checksums have smaller distances, and on a slow link there is one every
// checkpointTime. They show whether a source with another change time still has the
// bytes that were sent. A file that is sent within checkpointPause gets none, because
// each costs two writes to the disk.
const (
	checkpointEvery = 32 << 20
	checkpointFirst = 1 << 20
	checkpointTime  = time.Second
	checkpointPause = 100 * time.Millisecond
)

// checkpointTimeout bounds the save of a checkpoint, because the next save waits for it.
const checkpointTimeout = 10 * time.Second

// checkpointDue reports whether a checkpoint at offset should be saved. The last one
// was at offset last, and saved since ago.
func checkpointDue(offset, last int64, since time.Duration) bool {
	gain := offset - last
	return gain >= checkpointEvery || gain >= max(checkpointFirst, last) && since >= checkpointPause || gain >= chunk.Granularity && since >= checkpointTime
}

// LastCheckpoint returns the offset of the last one of a list of checkpoints.
func LastCheckpoint(list []chunk.Checkpoint) int64 {
	if n := len(list); n > 0 {
		return list[n-1].Offset
	}
	return 0
}

// withCheckpoint returns list with the checkpoint c, unless c is zero or not newer. It
// leaves out those before the greatest one at or below the committed offset, which a
// resume cannot need.
func withCheckpoint(list []chunk.Checkpoint, c chunk.Checkpoint, committed int64) []chunk.Checkpoint {
	list = slices.Clone(list)
	if c.Offset > LastCheckpoint(list) {
		list = append(list, c)
	}
	for len(list) > 1 && list[1].Offset <= committed {
		list = list[1:]
	}
	return list
}
