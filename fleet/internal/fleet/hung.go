package fleet

import (
	"errors"
	"sync/atomic"
	"time"

	"gcsup/chunk"
)

// errHung is the cause of the end of a task whose files cannot be read, and do not fail either.
var errHung = errors.New("a read of the source does not return")

// hungAfter is the number of ack waits after which a read is given up.
const hungAfter = 3

// reading is a read of a file of a task. While the task makes no progress, the worker reads its files a second time: an
// upload may wait for many reasons, and a read only for the file.
type reading struct {
	path  string
	since time.Time
}

// reader reads the files of a task that makes no progress.
type reader struct {
	moved    atomic.Int64 // events and finished files of the task
	seen     int64        // moved at the last call of check
	busy     atomic.Bool
	current  atomic.Pointer[reading]
	returned chan struct{} // closed when all reads have returned that the last call of check began
}

// check begins to read the unfinished files of x if the task has made no progress since the last call. It returns the
// path of a file whose read has not returned for limit, or "".
func (r *reader) check(x *execution, limit time.Duration) string {
	if now := r.current.Load(); now != nil && time.Since(now.since) >= limit {
		return now.path
	}
	moved := r.moved.Load()
	idle := moved == r.seen
	if r.seen = moved; idle && r.busy.CompareAndSwap(false, true) {
		returned := make(chan struct{})
		r.returned = returned
		go func() {
			defer close(returned)
			defer r.busy.Store(false)
			for _, f := range x.task.Files {
				if _, finished := x.finished.Load(f.Object); finished {
					continue
				}
				r.current.Store(&reading{f.Path, time.Now()})
				if src, err := chunk.Open(f.Path); err == nil { // the upload reports errors
					_, _ = src.ReadAt(make([]byte, 1), min(x.sent.Load(), max(src.Size()-1, 0)))
					_ = src.Close()
				}
			}
			r.current.Store(nil)
		}()
	}
	return ""
}
