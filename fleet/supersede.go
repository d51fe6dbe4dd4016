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

// supersede removes the records of earlier tasks of a submission from the totals. now has the tasks of the
// submission. A group of small files is another task if a file was added to it or removed: without
// supersede, Status would count its other files twice.
func (q *Queue) supersede(ctx context.Context, submission string, now taskSet) error {
	now.sort()
	records := q.open.Load().records
	return each(ctx, records, func(e jetstream.KeyValueEntry) error {
		var r record
		if json.Unmarshal(e.Value(), &r) != nil || r.Submission != submission || r.Superseded || now.has(e.Key()) {
			return nil
		}
		if r.State == stateQueued {
			r.Superseded = true // its worker deletes the record
			return q.putRecord(ctx, e.Key(), r, e.Revision())
		}
		err := records.Purge(ctx, e.Key(), jetstream.LastRevision(e.Revision()))
		if wrongRevision(err) {
			return nil // it was added again
		}
		return err
	})
}
