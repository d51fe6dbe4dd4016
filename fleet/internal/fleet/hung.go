package fleet

import (
	"context"
	"errors"
	"time"
)

// errHung is the cause of the end of a task whose files cannot be read, and do not fail either.
var errHung = errors.New("a read of the source does not return")

// hungAfter is the number of ack waits after which a read is given up.
const hungAfter = 3

// hung returns the path of a file of which a read has not returned for limit, or "". Other waits of an upload do not count,
// such as those for the service.
func (x *execution) hung(limit time.Duration) string {
	if path, since := x.reads.Oldest(); path != "" && time.Since(since) >= limit {
		return path
	}
	return ""
}

// awaitReads waits until all reads have returned, or ctx is done.
func (x *execution) awaitReads(ctx context.Context) {
	for ctx.Err() == nil {
		if path, _ := x.reads.Oldest(); path == "" {
			return
		}
		pause(ctx, time.Second)
	}
}
