package fleet

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// taskSet is a set of IDs of tasks. It needs 8 bytes for each, because a tree may have millions: it keeps
// the first half of an ID.
type taskSet struct{ heads []uint64 }

func (s *taskSet) add(id string) { s.heads = append(s.heads, head(id)) }

// sort prepares s for has.
func (s *taskSet) sort() { slices.Sort(s.heads) }

func (s *taskSet) has(id string) bool {
	_, found := slices.BinarySearch(s.heads, head(id))
	return found
}

// head returns the first 8 bytes of an ID.
func head(id string) uint64 {
	var b [8]byte
	if len(id) >= 2*len(b) {
		_, _ = hex.Decode(b[:], []byte(id[:2*len(b)]))
	}
	return binary.BigEndian.Uint64(b[:])
}

// supersede removes a submission from the records of tasks that it does not have any longer, so that
// Status does not count them. now has its tasks. A group of small files is another task if a file was added
// to it or removed: without supersede, Status would count its other files twice.
func (q *Queue) supersede(ctx context.Context, submission string, now taskSet) error {
	now.sort()
	return each(ctx, q.open.Load().records, func(e jetstream.KeyValueEntry) error {
		var r record
		if json.Unmarshal(e.Value(), &r) != nil || !slices.Contains(r.Submissions, submission) || now.has(e.Key()) {
			return nil
		}
		return q.leave(ctx, e.Key(), submission)
	})
}

// leave removes a submission from the record of a task. If it was the only one, the task is superseded.
func (q *Queue) leave(ctx context.Context, id, submission string) error {
	for {
		r, revision, err := q.record(ctx, id)
		i := slices.Index(r.Submissions, submission)
		if err != nil || i < 0 {
			return err
		}
		r.Submissions = slices.Delete(r.Submissions, i, i+1)
		r.Superseded = len(r.Submissions) == 0
		var written bool
		if r.Superseded && r.State == stateDone {
			written, err = q.purgeRecord(ctx, id, revision)
		} else {
			written, err = q.putRecord(ctx, id, r, revision) // if it is superseded, its worker deletes the record
		}
		if written || err != nil {
			return err
		}
	}
}
